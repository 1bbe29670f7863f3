// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace rehearse::exec {

// Which of the worlds that this process has made runs on the calling thread: each has a number of its own, from 1 on. 0
// where none does. For what a rank keeps beyond its fibers: a rank of a later world is another one.
std::uint64_t world_number() noexcept;

}  // namespace rehearse::exec
