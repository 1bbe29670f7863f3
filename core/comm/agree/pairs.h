// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <vector>

#include <rehearse/exec/call_site.h>
#include <rehearse_internal/comm/group_identity.h>
#include <rehearse_internal/comm/mismatch.h>

#include "comm/agree/made_call.h"

// Compares two calls that exchange data: a send and its receive, or two calls of an all-to-all.
namespace rehearse::comm {

// Compares what two ranks exchange in an all-to-all, or in the all-to-alls of coalesced calls: whether each sends as
// many elements as the other expects, and whether both use one memory format, because back ends copy memory as one
// block. The value of the lower rank of the world comes first. Returns nullopt if the calls fit, or if what they
// exchange is unknown. The two calls agree().
std::optional<Mismatch::Field> exchange_difference(const MadeCall& one, const MadeCall& other,
                                                   const GroupIdentity& group);

// Whether the call has tensors with elements. Only calls with elements have a memory format.
bool has_elements(const MadeCall& call);

// The ranks of the world for which a send or receive waits while it is not matched: its peer or, for a receive from any
// source, all other ranks of the group. `rank`: the caller's rank in the group.
std::vector<int> awaited_by_message(const Operation& call, int rank, const GroupIdentity& group);

struct PlacedCall {
  const MadeCall& call;
  exec::CallSite where;
};

// The mismatch of two calls of one collective that differ in `field`. The lower rank of the world comes first.
Mismatch mismatch_of_two(PlacedCall one, PlacedCall other, Mismatch::Field field, const GroupIdentity& group);

// The mismatch of a send and its receive, which differ in `fields`; `met` arrived before `last`. `fields`: their
// pair_differences().
Mismatch mismatch_of_pair(PlacedCall met, PlacedCall last, std::vector<Mismatch::Field> fields,
                          const GroupIdentity& group);

}  // namespace rehearse::comm
