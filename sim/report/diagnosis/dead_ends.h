// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <rehearse/exec/time.h>
#include <rehearse_internal/comm/wait_for_graph.h>

namespace rehearse::sim {

// One clause for each of the first two causes, in the order of `ends`. If there are more causes, one more text says how
// many. For example "rank 2 waits forever in store wait for key "k", which is not set, at train.cpp:41; ranks 0-1 wait
// for it in barrier #2 on group "world"". `polling`: ranks that poll, and the call with which each polls (empty:
// unknown). `until`: the time at which a timeout ended the waits ("rank 2 was still in a sleep at ..."); nothing: the
// waits last forever.
std::vector<std::string> texts_of_dead_ends(const std::vector<comm::DeadEnd>& ends,
                                            const std::map<int, std::string>& polling,
                                            std::optional<VirtualTime> until);

}  // namespace rehearse::sim
