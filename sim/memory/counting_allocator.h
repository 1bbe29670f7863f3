// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// LibTorch's CPU allocator while the memory of a world is counted: the one that was there before, behind a table of who
// has taken what.
namespace rehearse::sim {

class MemoryMeter;

// Allocations in fibers of this thread's world are the meter's from now on. One a thread at a time; the first of the
// process puts the allocator in place, and end_counting() of the last takes it away.
void begin_counting(MemoryMeter& meter);

// What the rank has taken and is not given back yet is given back now, and nobody's from then on.
void forget_taken(MemoryMeter& meter, int rank) noexcept;

// What was taken and is not given back yet is nobody's from now on.
void end_counting(MemoryMeter& meter) noexcept;

}  // namespace rehearse::sim
