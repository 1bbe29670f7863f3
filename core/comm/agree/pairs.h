// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <rehearse/exec/call_site.h>
#include <rehearse_internal/comm/group_identity.h>
#include <rehearse_internal/comm/mismatch.h>

#include "comm/agree/made_call.h"

// What two ranks of a group must agree on: a send and its receive, and the edges of an all-to-all.
namespace rehearse::comm {

// What one rank sends to the other of part number `part` of an all-to-all, and that one expects, where these differ.
// The value of the lower rank (of the world) comes first.
std::optional<Mismatch::Field> edge_difference(const MadeCall& sender, const MadeCall& receiver, std::size_t part,
                                               const GroupIdentity& group);

// How their memory lies, where it goes as it lies and they do not agree; that of the lower rank (of the world) comes
// first. None if one of the two has no elements.
std::optional<Mismatch::Field> format_difference(const MadeCall& one, const MadeCall& other,
                                                 const GroupIdentity& group);

// Has the call tensors with elements? Only those say how memory lies.
bool has_elements(const MadeCall& call);

// One rank's call as a side of a mismatch.
struct PlacedCall {
  const MadeCall& call;
  exec::CallSite where;
};

// The mismatch of two calls of one collective that differ in that field. The lower rank (of the world) comes first.
Mismatch mismatch_of_two(PlacedCall one, PlacedCall other, Mismatch::Field field, const GroupIdentity& group);

// The mismatch of a send and a receive that have met: `met` arrived before `last`. `fields`: their pair_differences().
Mismatch mismatch_of_pair(PlacedCall met, PlacedCall last, std::vector<Mismatch::Field> fields,
                          const GroupIdentity& group);

}  // namespace rehearse::comm
