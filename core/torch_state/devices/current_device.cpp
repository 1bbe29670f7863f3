// SPDX-License-Identifier: BSD-3-Clause
#include "torch_state/devices/current_device.h"

#include <string>

#include <c10/util/Exception.h>

#include <rehearse_internal/torch_state/torch_state.h>

namespace rehearse::torch_state {
namespace {

const c10::impl::DeviceGuardImplInterface* require_guard(c10::DeviceType type) {
  const auto* guard = c10::impl::device_guard_impl_registry[static_cast<std::size_t>(type)].load();
  if (guard != nullptr) return guard;
  const std::string name = c10::DeviceTypeName(type, true);
  throw TorchStateError(TorchStateError::Reason::device_missing, "",
                        "ranks are to have devices of type " + name +
                            ", but no library of LibTorch's for them is loaded. Link it, or open it with dlopen(), "
                            "before ranks start (of cuda: libtorch_cuda.so)");
}

}  // namespace

CurrentDevice::CurrentDevice(c10::DeviceType type, Exchange exchange)
    : guard_(require_guard(type)), exchange_(exchange) {}

c10::DeviceIndex CurrentDevice::exchange(c10::DeviceIndex device) const noexcept {
  if (exchange_ != nullptr) return static_cast<c10::DeviceIndex>(exchange_(device));
  try {
    return guard_->exchangeDevice({guard_->type(), device}).index();
  } catch (const c10::Error&) {
    return -1;
  }
}

}  // namespace rehearse::torch_state
