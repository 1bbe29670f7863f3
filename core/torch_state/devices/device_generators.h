// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>

namespace rehearse::torch_state {

// The default generators of all devices of one type, for each rank. LibTorch has one generator per device, in a place
// that the whole process shares, and torch::manual_seed() seeds all of them. Here each rank has its own generator for
// every device, and switches exchange the contents of the places.
class DeviceGenerators {
 public:
  // The scheduler's context (the host) keeps the existing generators. If the type has no generators, because its
  // library is not loaded, switches exchange nothing. Throws TorchStateError if the generators cannot be exchanged, or
  // if the CUDA library is loaded and LibTorch sees no GPU.
  explicit DeviceGenerators(c10::DeviceType type);
  DeviceGenerators(const DeviceGenerators&) = delete;
  DeviceGenerators& operator=(const DeviceGenerators&) = delete;
  ~DeviceGenerators() { make_live(kHost); }

  static constexpr int kHost = -1;

  // Makes new generators for the rank, freshly seeded.
  void renew(int rank, std::uint64_t seed);

  // Makes the generators of `rank` the process's default generators. kHost: those of the host.
  void make_live(int rank) noexcept {
    if (rank != live_) exchange(rank);
  }

 private:
  using OfDevices = std::vector<at::Generator>;

  void require_exchangeable() const;
  void exchange(int rank) noexcept;
  void place(const OfDevices& generators) noexcept;

  const c10::DeviceType type_;
  std::vector<at::Generator*> defaults_;  // by device; these point into LibTorch
  OfDevices of_host_;
  std::vector<OfDevices> of_ranks_;
  int live_ = kHost;
};

}  // namespace rehearse::torch_state
