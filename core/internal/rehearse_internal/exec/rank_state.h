// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>

namespace rehearse::exec {

// Library state that belongs to a rank, although it is in thread-local or global variables of the one OS thread that
// all ranks share. The executor keeps one image of it for each fiber and one for itself, and exchanges them at every
// switch. rehearse_internal/torch_state/torch_state.h lists LibTorch's state.
//
// The executor calls all of these functions on its own thread.
class RankState {
 public:
  virtual ~RankState() = default;

  // Size of an image; constant during a run.
  virtual std::size_t image_bytes() const noexcept = 0;

  // Writes into `image` the state that a fresh thread of `rank` would find. `fiber` is 0 for the rank's main fiber and
  // counts up for its helper fibers, which correspond to further threads of the same process. May throw.
  virtual void create_image(std::byte* image, int rank, std::uint32_t fiber) = 0;

  // Saves the live state into `out` and makes `in` live. Runs at every switch, so it must be fast.
  virtual void exchange(std::byte* out, const std::byte* in) noexcept = 0;

  // Called in the ending fiber with its state live. Runs what thread exit would run: destructors of thread-locals.
  virtual void end_fiber(int rank, std::uint32_t fiber) noexcept = 0;
};

}  // namespace rehearse::exec
