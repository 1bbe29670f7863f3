// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse_internal/sim/scenario.h>

#include "cli/grammar/arguments.h"

namespace rehearse::cli {

// Runs seed 1 of the scenario without faults, without and with preempt, at once and in processes of their own, and
// counts the choices of the next fiber. Strategies that leave an order at drawn points need the number. 0 for a run
// that does not end, or if no seed needs the number. What the runs print is lost. The process must not have threads.
sim::ProbedSteps probe_steps(const Arguments& arguments, const sim::Scenario& scenario);

}  // namespace rehearse::cli
