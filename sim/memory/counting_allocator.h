// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// While the memory of a world is counted, LibTorch's CPU allocator is a counting one. It passes each allocation on to
// the former allocator, and notes which rank made it.
namespace rehearse::sim {

class MemoryMeter;

// Installs the allocator if `meter` is the only one of the process, and if the former allocator has a raw_deleter().
// The allocator then counts allocations in fibers of the world to which `meter` is lent
// (exec::WorldLocal<MemoryMeter>), except while operators::are_unseen() is true. end_counting() for the last meter
// removes the allocator.
void begin_counting(MemoryMeter& meter);

// Subtracts from the rank's account the memory that nobody has freed yet. No account contains this memory any more.
void forget_taken(MemoryMeter& meter, int rank) noexcept;

// Forgets all memory that `meter` counts. The allocator never calls `meter` again, even if somebody frees such memory.
void end_counting(MemoryMeter& meter) noexcept;

}  // namespace rehearse::sim
