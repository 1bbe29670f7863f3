// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <rehearse/exec/time.h>
#include <rehearse_internal/comm/group_identity.h>
#include <rehearse_internal/comm/mismatch.h>
#include <rehearse_internal/comm/operation.h>

#include "process/check/messages.h"

namespace rehearse::real {

// One rank's call that has not met its peers.
struct OpenCall {
  int rank = -1;  // within the group
  std::uint64_t sequence = 0;
  comm::Operation operation;
  std::uint64_t fingerprint = 0;
  VirtualTime since{};
  bool disagrees = false;  // with the message that it has met
};

using OpenCalls = std::vector<const OpenCall*>;  // of those that are there, in order of rank

bool agree(const OpenCall& one, const OpenCall& other);

// Of one collective, where not all agree: sides and fields as in the simulation. Those of the calls are alike.
comm::Mismatch mismatch_of_collective(const OpenCalls& calls, const comm::GroupIdentity& group);

// Of an all-to-all whose fingerprints agree: the first pair of ranks whose splits or layouts do not fit.
std::optional<comm::Mismatch> mismatch_of_edges(const OpenCalls& calls, const comm::GroupIdentity& group);

// Of a send and the receive that it meets; `first` was there before.
std::optional<comm::Mismatch> mismatch_of_pair(const OpenCall& send, const OpenCall& recv, bool send_came_last,
                                               const comm::GroupIdentity& group);

// Of the calls of one new_group, by ranks of a world of `size`; nothing where they are the same.
struct GroupCall {
  int rank = -1;
  GroupMade made;
};
std::optional<comm::Mismatch> mismatch_of_groups(const std::vector<GroupCall>& calls, int size);

}  // namespace rehearse::real
