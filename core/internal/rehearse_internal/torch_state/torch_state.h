// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>

#include <rehearse_internal/exec/rank_state.h>

namespace rehearse::torch_state {

// The LibTorch that is loaded cannot be shared by ranks. Thrown by TorchRankState's constructor, which then
// has changed nothing.
class TorchStateError : public std::runtime_error {
 public:
  enum class Reason {
    not_loaded,          // libc10 or libtorch_cpu is not a shared library of this process
    unreadable,          // its file cannot be read
    no_symbol_table,     // its file has been stripped
    version_differs,     // its thread-local variables are not those of LibTorch 2.11
    interposer_missing,  // the executable does not export Rehearse's __cxa_thread_atexit
    device_missing,      // TorchStateOptions::devices has one that is not there
    loaded_late,         // LibTorch was asked for a GPU before its library for them was loaded
  };

  TorchStateError(Reason reason, std::string library, const std::string& what)
      : std::runtime_error("rehearse: " + what), reason_(reason), library_(std::move(library)) {}

  Reason reason() const noexcept { return reason_; }
  const std::string& library() const noexcept { return library_; }

 private:
  Reason reason_;
  std::string library_;
};

struct TorchStateOptions {
  // What each rank's default CPU generator is seeded with, as by torch::manual_seed(seed) in each process.
  std::uint64_t seed = 0;

  // false: each rank gets a seed of its own, a function of `seed` and the rank.
  bool same_seed_on_all_ranks = true;

  // Calls at::set_num_threads(1) for the life of the object, so that results do not depend on the machine's
  // cores.
  bool single_threaded_ops = true;

  // A backward pass runs whole in the fiber that asks for it. LibTorch's way with tensors of devices is a thread for
  // each device: hooks would run outside of their rank, and the rank would wait for a thread that is none of its own.
  bool single_threaded_autograd = false;

  // The device of each rank, by rank, all of one type. A rank's fibers begin with it as the current device and with the
  // default streams, and torch::manual_seed() in a rank seeds the rank's generators of all devices, and no other
  // rank's. Empty: ranks have none, and devices are asked for nothing.
  std::vector<c10::Device> devices{};

  // Makes a device the calling thread's current one and returns which was: for who is told of every change. Null:
  // LibTorch's, which asks the driver at every switch (60 ns on a H200).
  int (*exchange_device)(int device) noexcept = nullptr;
};

// What LibTorch keeps for a thread or a process, kept for each rank instead: grad mode, dispatch keys, the
// autograd engine's queues, autocast, hooks, warning handler, process group registry, the default generators, the
// current device and so on (the inventory is core/torch_state/tls/tls_inventory.cpp). A fiber starts with what a
// new thread would find.
//
// LibTorch's CUDA libraries are among it when they are loaded by the time the object is made
// (core/torch_state/tls/cuda_inventory.cpp).
//
// NOT covered: variables of NVIDIA's own libraries, thread_local variables of the program itself, and process-wide
// settings such as at::globalContext(): these are shared by all ranks.
//
// Ownership: owns the ranks' generators; keeps those of ended runs until a rank with that number starts
// again.
//
// Threads: create it on the thread that runs the executor; a later run on another thread is fine. At most one
// object may exist at a time in a process: it changes process-wide settings of LibTorch, and puts them back
// when destroyed (the number of threads, and c10d's thread isolation mode: to off, its default, since it
// cannot be read).
//
// Blocking: nothing blocks. The first object of a process reads symbol tables, which takes some milliseconds.
//
// Errors: the constructor throws TorchStateError, and std::logic_error when another object exists.
class TorchRankState final : public exec::RankState {
 public:
  explicit TorchRankState(TorchStateOptions options = {});
  TorchRankState(const TorchRankState&) = delete;
  TorchRankState& operator=(const TorchRankState&) = delete;
  ~TorchRankState() override;

  std::size_t image_bytes() const noexcept override;

  // A rank's main fiber also gets freshly seeded generators. Throws std::logic_error on a thread other than
  // that of fibers which have not ended, std::out_of_range when devices are given and the rank has none.
  void create_image(std::byte* image, int rank, std::uint32_t fiber) override;

  void exchange(std::byte* out, const std::byte* in) noexcept override;

  // Runs the destructors of the fiber's thread-locals, last registered first. At the end of a rank's main
  // fiber the process groups that the rank registered with c10d are taken out of its registry first.
  void end_fiber(int rank, std::uint32_t fiber) noexcept override;

  // The default CPU generator of `rank`, from the creation of its main fiber on (std::out_of_range before
  // that). A handle: it stays valid, and draws from it are the rank's draws.
  at::Generator generator(int rank) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rehearse::torch_state
