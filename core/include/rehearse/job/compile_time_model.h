// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/exec/time.h>

namespace rehearse::compiler {

// How long compiling takes in virtual time: so much for each node of the graph. Each compilation takes up to `jitter`
// of that longer, in 16 equal steps chosen by the oracle, so that ranks that compile the same graph are done at
// different times; 0, or one that takes no time: no choice is made. Lent to a world by whoever runs it
// (exec::WorldLocal); by default compiling takes no time.
struct CompileTimeModel {
  VirtualDuration per_node{};
  double jitter = 0.0;
};

}  // namespace rehearse::compiler
