// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <rehearse/exec/call_site.h>
#include <rehearse_internal/comm/group_identity.h>
#include <rehearse_internal/comm/mismatch.h>

#include "comm/agree/made_call.h"

// Compares two calls that exchange data: a send and its receive, or the two ends of an edge of an all-to-all.
namespace rehearse::comm {

// Compares the number of elements that `sender` sends to `receiver` in an all-to-all with the number that `receiver`
// expects from `sender`. `part`: the index in each call's parts_of(). Returns nullopt if the numbers agree, or if one
// of them is unknown. The value of the lower rank of the world comes first.
std::optional<Mismatch::Field> edge_difference(const MadeCall& sender, const MadeCall& receiver, std::size_t part,
                                               const GroupIdentity& group);

// Compares the memory formats of two calls, for operations that ignore strides and copy memory as one block. The format
// of the lower rank of the world comes first. Returns nullopt if they agree, or if one of the calls has no elements.
std::optional<Mismatch::Field> format_difference(const MadeCall& one, const MadeCall& other,
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
