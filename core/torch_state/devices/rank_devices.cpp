// SPDX-License-Identifier: BSD-3-Clause
#include "torch_state/devices/rank_devices.h"

#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include <ATen/Context.h>
#include <c10/util/Exception.h>

#include <rehearse_internal/libtorch/version.h>
#include <rehearse_internal/torch_state/torch_state_error.h>

#include "torch_state/tls/elf_tls.h"

namespace rehearse::torch_state {
namespace {

static_assert(sizeof(at::Generator) == sizeof(void*), "a default generator is exchanged as one pointer");

constexpr const char* kLibrary = "libtorch_cuda.so";

// Copies the pointer only. Reference counts do not change, because the owners keep both generators alive.
void put(at::Generator& target, const at::Generator& generator) noexcept {
  std::memcpy(static_cast<void*>(&target), static_cast<const void*>(&generator), sizeof target);
}

const at::Generator& default_generator(c10::DeviceType type, std::size_t device) {
  return at::globalContext().defaultGenerator({type, static_cast<c10::DeviceIndex>(device)});
}

// LibTorch asks libtorch_cuda only once per process whether CUDA is available.
void require_known(bool available) {
  if (available || !is_loaded(kLibrary)) return;
  throw TorchStateError(TorchStateError::Reason::loaded_late, kLibrary,
                        std::string(kLibrary) +
                            " is loaded, and LibTorch sees no GPU: either there is none, or LibTorch had been asked "
                            "for one before the library was there. Load it before anything else of LibTorch runs");
}

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

DeviceGenerators::DeviceGenerators(c10::DeviceType type) : type_(type) {
  const auto& hooks = at::globalContext().getAcceleratorHooksInterface(type);
  const bool available = hooks.isAvailable();
  if (type == c10::kCUDA) require_known(available);
  if (!available) return;
  for (c10::DeviceIndex device = 0; device < hooks.deviceCount(); ++device) {
    defaults_.push_back(const_cast<at::Generator*>(&at::globalContext().defaultGenerator({type, device})));
    of_host_.push_back(*defaults_.back());
  }
  require_exchangeable();
}

// Each device's default generator is stored in its own place. A version may differ, so check.
void DeviceGenerators::require_exchangeable() const {
  const auto& hooks = at::globalContext().getAcceleratorHooksInterface(type_);
  for (std::size_t device = 0; device < defaults_.size(); ++device) {
    const at::Generator probe = hooks.getNewGenerator(static_cast<c10::DeviceIndex>(device));
    put(*defaults_[device], probe);
    const bool seen = default_generator(type_, device) == probe;
    put(*defaults_[device], of_host_[device]);
    if (seen && default_generator(type_, device) == of_host_[device]) continue;
    throw TorchStateError(TorchStateError::Reason::version_differs, kLibrary,
                          "LibTorch's default generator of device " +
                              c10::Device(type_, static_cast<c10::DeviceIndex>(device)).str() +
                              " cannot be exchanged, so torch::manual_seed() in a rank would seed all ranks'. Use the "
                              "official package of LibTorch " +
                              std::string(libtorch::kVersion));
  }
}

void DeviceGenerators::renew(int rank, std::uint64_t seed) {
  const auto index = static_cast<std::size_t>(rank);
  if (index >= of_ranks_.size()) of_ranks_.resize(index + 1);
  const auto& hooks = at::globalContext().getAcceleratorHooksInterface(type_);
  OfDevices generators;
  for (std::size_t device = 0; device < defaults_.size(); ++device) {
    generators.push_back(hooks.getNewGenerator(static_cast<c10::DeviceIndex>(device)));
    generators.back().set_current_seed(seed);
  }
  if (live_ == rank) place(generators);
  of_ranks_[index] = std::move(generators);
}

void DeviceGenerators::exchange(int rank) noexcept {
  place(rank == kHost ? of_host_ : of_ranks_[static_cast<std::size_t>(rank)]);
  live_ = rank;
}

void DeviceGenerators::place(const OfDevices& generators) noexcept {
  for (std::size_t device = 0; device < defaults_.size(); ++device) put(*defaults_[device], generators[device]);
}

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
