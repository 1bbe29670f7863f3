// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/exec/time.h>

namespace rehearse::compiler {

// How long compiling takes in virtual time: `per_node` for each node of the graph, lengthened by up to the fraction
// `jitter`. The oracle chooses one of 16 evenly spaced values, from none to all of the jitter, so that ranks that
// compile the same graph finish at different times. If the jitter or the time is 0, nothing is chosen. The code that
// starts a world lends it the model (exec::WorldLocal); by default compiling takes no time.
struct CompileTimeModel {
  VirtualDuration per_node{};
  double jitter = 0.0;
};

}  // namespace rehearse::compiler
