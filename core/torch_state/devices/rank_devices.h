// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

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

// The current device of the calling thread, for one type of device.
class CurrentDevice {
 public:
  using Exchange = int (*)(int device) noexcept;

  // `exchange`: see TorchStateOptions::exchange_device. Throws TorchStateError if no library for this type is loaded.
  CurrentDevice(c10::DeviceType type, Exchange exchange);

  c10::DeviceIndex count() const noexcept { return guard_->deviceCount(); }

  // Makes `device` current and returns the previous one, or -1 if the driver fails. A lost device must not break a
  // switch; the next call that uses it will report the loss.
  c10::DeviceIndex exchange(c10::DeviceIndex device) const noexcept;

 private:
  const c10::impl::DeviceGuardImplInterface* guard_;
  const Exchange exchange_;
};

// The part of a switch that depends on a rank's device: the current device, and the default generators of devices.
class RankDevices {
 public:
  // `devices`: by rank, not empty. Throws TorchStateError if types differ or a device does not exist, and as
  // CurrentDevice and DeviceGenerators do.
  RankDevices(std::vector<c10::Device> devices, CurrentDevice::Exchange exchange);

  // The index of the rank's device. Throws std::out_of_range if the rank has none.
  c10::DeviceIndex of(int rank) const;

  void renew_generators(int rank, std::uint64_t seed) { generators_.renew(rank, seed); }

  // Call it at a switch to a fiber of `rank` (or to the host) whose current device was `to` when the fiber last ran.
  // Makes `to` current, and stores the current device of the leaving fiber in `from`. If `to` is negative, leaves the
  // device and `from` as they are. If the driver fails, leaves `from` as it is.
  void exchange(c10::DeviceIndex& from, int rank, c10::DeviceIndex to) noexcept;

 private:
  const std::vector<c10::Device> devices_;
  const CurrentDevice current_;
  DeviceGenerators generators_;
};

}  // namespace rehearse::torch_state
