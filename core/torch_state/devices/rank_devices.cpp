// SPDX-License-Identifier: BSD-3-Clause
#include "torch_state/devices/rank_devices.h"

#include <stdexcept>
#include <string>
#include <utility>

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

[[noreturn]] void refuse_device(std::size_t rank, const c10::Device& device, const std::string& why) {
  throw TorchStateError(TorchStateError::Reason::device_missing, "",
                        "the device of rank " + std::to_string(rank) + " is " + device.str() + ", " + why);
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

RankDevices::RankDevices(std::vector<c10::Device> devices, CurrentDevice::Exchange exchange)
    : devices_(std::move(devices)), current_(devices_.at(0).type(), exchange), generators_(devices_.at(0).type()) {
  const auto type = devices_[0].type();
  for (std::size_t rank = 0; rank < devices_.size(); ++rank) {
    const c10::Device& device = devices_[rank];
    if (device.type() != type)
      refuse_device(rank, device, "and that of rank 0 " + devices_[0].str() + ": give one type");
    if (!device.has_index() || device.index() >= current_.count())
      refuse_device(rank, device, "but there are " + std::to_string(current_.count()) + ", counted from 0");
  }
}

void RankDevices::exchange(c10::DeviceIndex& from, int rank, c10::DeviceIndex to) noexcept {
  if (to >= 0) {
    const auto before = current_.exchange(to);
    if (before >= 0) from = before;
  }
  generators_.make_live(rank);
}

c10::DeviceIndex RankDevices::of(int rank) const {
  const auto index = static_cast<std::size_t>(rank);
  if (index < devices_.size()) return devices_[index].index();
  throw std::out_of_range("rehearse: rank " + std::to_string(rank) + " has no device: " +
                          std::to_string(devices_.size()) + " were given, one for each rank from 0");
}

}  // namespace rehearse::torch_state
