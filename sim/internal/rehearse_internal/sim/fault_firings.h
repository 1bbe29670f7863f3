// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <rehearse/job/fault_line.h>

namespace rehearse::sim {

// For records that outlive a crash. Called after each firing of fault `number` (from 0) of the current world, and with
// null when a world with faults ends. It must be quick.
using FiringObserver = void (*)(std::size_t number, const FaultLine* line);

// Null, the initial value: nobody is told.
void observe_firings(FiringObserver observer) noexcept;

}  // namespace rehearse::sim
