// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <c10/core/Device.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace rehearse::torch_state {

// The current device of the calling thread, among those of one type.
class CurrentDevice {
 public:
  using Exchange = int (*)(int device) noexcept;

  // `exchange`: see TorchStateOptions::exchange_device. Throws TorchStateError: no library for this type is loaded.
  CurrentDevice(c10::DeviceType type, Exchange exchange);

  // How many devices of the type there are.
  c10::DeviceIndex count() const noexcept { return guard_->deviceCount(); }

  // Makes `device` current and returns which was. Unknown (-1) where the driver fails: a lost device must not end a
  // switch, and is met by the next call that uses it.
  c10::DeviceIndex exchange(c10::DeviceIndex device) const noexcept;

 private:
  const c10::impl::DeviceGuardImplInterface* guard_;
  const Exchange exchange_;
};

}  // namespace rehearse::torch_state
