// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <rehearse/exec/time.h>
#include <rehearse_internal/comm/wait_for_graph.h>

namespace rehearse::sim {

// "rank 2 waits forever in store wait for key "k" at train.cpp:41; ranks 0-1 wait for it in barrier #2": a clause for
// each cause, those that hold up the most first. `polling`: ranks that look again and again, and the call with which
// they look; empty: not known. `until`: when a timeout ended the wait for them ("rank 2 was still in a sleep at ...");
// empty: they go on forever.
std::vector<std::string> texts_of_dead_ends(const std::vector<comm::DeadEnd>& ends,
                                            const std::map<int, std::string>& polling,
                                            std::optional<VirtualTime> until);

}  // namespace rehearse::sim
