// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>

#include <rehearse_internal/exec/rank_state.h>
#include <rehearse_internal/torch_state/torch_state_error.h>

namespace rehearse::torch_state {

struct TorchStateOptions {
  // The seed of each rank's default CPU generator, as if each process called torch::manual_seed(seed).
  std::uint64_t seed = 0;

  // If false, each rank gets its own seed, a function of `seed` and the rank.
  bool same_seed_on_all_ranks = true;

  // Calls at::set_num_threads(1) for the life of the object, so that results do not depend on the number of cores.
  bool single_threaded_ops = true;

  // Runs a whole backward pass in the fiber that asks for it. With device tensors, LibTorch would run it on one thread
  // per device: hooks would run outside of their rank, and the rank would wait for a thread that does not belong to it.
  bool single_threaded_autograd = false;

  // The device of each rank, by rank, all of one type. A rank's fibers start with it as the current device and with the
  // default streams. torch::manual_seed() in a rank seeds the rank's generators of all devices, and no other rank's.
  // Empty: ranks have no devices, and no device is touched.
  std::vector<c10::Device> devices{};

  // Makes a device the calling thread's current one, and returns the previous one. For callers that track every change
  // themselves. Null: LibTorch's function, which asks the driver at every switch (60 ns on an H200).
  int (*exchange_device)(int device) noexcept = nullptr;
};

// Keeps, for each rank, the state that LibTorch keeps per thread or per process: grad mode, dispatch keys, the autograd
// engine's queues, autocast, hooks, warning handler, process group registry, the default generators, the current device
// and so on (core/torch_state/tls/tls_inventory.cpp has the inventory). A fiber starts with the state of a new thread.
//
// Includes LibTorch's CUDA libraries if they are loaded when the object is made
// (core/torch_state/tls/cuda_inventory.cpp).
//
// NOT covered: variables of NVIDIA's own libraries, thread_local variables of the program itself, and process-wide
// settings such as at::globalContext(). All ranks share these.
//
// Ownership: owns the ranks' generators; keeps the generators of an ended run until a rank with the same number starts
// again.
//
// Threads: create it on the thread that runs the executor; a later run may use another thread. At most one object may
// exist in a process, because it changes process-wide settings of LibTorch. Its destructor restores the number of
// threads, and turns c10d's thread isolation mode off (the default, because the mode cannot be read).
//
// Blocking: nothing blocks. The first object of a process reads symbol tables, which takes a few milliseconds.
//
// Errors: the constructor throws TorchStateError, and std::logic_error if another object exists.
class TorchRankState final : public exec::RankState {
 public:
  explicit TorchRankState(TorchStateOptions options = {});
  TorchRankState(const TorchRankState&) = delete;
  TorchRankState& operator=(const TorchRankState&) = delete;
  ~TorchRankState() override;

  std::size_t image_bytes() const noexcept override;

  // For a rank's main fiber (number 0), also makes new, freshly seeded generators. Throws std::logic_error if fibers of
  // another thread have not ended, and std::out_of_range if devices are given but none for this rank.
  void create_image(std::byte* image, int rank, std::uint32_t fiber) override;

  void exchange(std::byte* out, const std::byte* in) noexcept override;

  // Runs the destructors of the fiber's thread-locals, last registered first. At the end of a rank's main fiber, first
  // empties the rank's part of c10d's registry of process groups.
  void end_fiber(int rank, std::uint32_t fiber) noexcept override;

  // The default CPU generator of `rank`. Throws std::out_of_range before the rank's main fiber has been created. It is
  // the generator that the rank itself uses, so code that draws from it changes what the rank draws next. The handle
  // stays valid; if the rank starts again, the rank gets another generator.
  at::Generator generator(int rank) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rehearse::torch_state
