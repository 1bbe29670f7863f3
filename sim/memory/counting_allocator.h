// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// LibTorch's CPU allocator while the memory of a world is counted: the former allocator behind a table that says who
// has allocated what.
namespace rehearse::sim {

class MemoryMeter;

// From now on, the meter counts allocations in fibers of this thread's world. A thread may have one meter at a time.
// The first meter of the process installs the allocator; end_counting() of the last one removes it.
void begin_counting(MemoryMeter& meter);

// Subtracts from the rank's account what the rank has allocated and not freed yet. From then on, nobody counts this
// memory.
void forget_taken(MemoryMeter& meter, int rank) noexcept;

// From now on, nobody counts the memory that is allocated and not freed yet.
void end_counting(MemoryMeter& meter) noexcept;

}  // namespace rehearse::sim
