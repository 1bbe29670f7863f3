// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <c10/core/Device.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace rehearse::torch_state {

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

}  // namespace rehearse::torch_state
