// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <c10/core/Device.h>

#include "torch_state/devices/current_device.h"
#include "torch_state/devices/device_generators.h"

namespace rehearse::torch_state {

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
