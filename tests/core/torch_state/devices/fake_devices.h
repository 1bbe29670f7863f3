// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/DeviceType.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>

namespace rehearse::torch_state {

constexpr auto kFakeType = c10::kPrivateUse1;
inline c10::Device fake_device(int index) { return {kFakeType, static_cast<c10::DeviceIndex>(index)}; }

// Devices that do nothing, registered as a library of LibTorch would register its devices. One object per process.
class FakeDevices final : public c10::impl::DeviceGuardImplInterface {
 public:
  static FakeDevices& instance() {
    static FakeDevices* const made = [] {
      auto* const guard = new FakeDevices;
      c10::impl::device_guard_impl_registry[static_cast<std::size_t>(kFakeType)].store(guard);
      c10::register_privateuse1_backend("fake");
      at::RegisterPrivateUse1HooksInterface(new Hooks);
      return guard;
    }();
    return *made;
  }

  static constexpr int kDevices = 3;

  mutable int current = 0;
  mutable int changes = 0;  // how often exchangeDevice() or setDevice() has changed the current device
  std::string lost;         // if not empty, exchangeDevice() and setDevice() throw this

  c10::DeviceType type() const override { return kFakeType; }
  c10::Device exchangeDevice(c10::Device device) const override {
    TORCH_CHECK(lost.empty(), lost);
    const int before = std::exchange(current, device.index());
    changes += before != current;
    return fake_device(before);
  }
  c10::Device getDevice() const override { return fake_device(current); }
  void setDevice(c10::Device device) const override { exchangeDevice(device); }
  void uncheckedSetDevice(c10::Device device) const noexcept override { current = device.index(); }
  c10::Stream getStream(c10::Device device) const override { return c10::Stream(c10::Stream::DEFAULT, device); }
  c10::Stream exchangeStream(c10::Stream stream) const override { return stream; }
  c10::DeviceIndex deviceCount() const noexcept override { return kDevices; }

 private:
  struct Hooks final : at::PrivateUse1HooksInterface {
    bool isBuilt() const override { return true; }
    bool isAvailable() const override { return true; }
    bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
    c10::DeviceIndex deviceCount() const override { return kDevices; }
    const at::Generator& getDefaultGenerator(c10::DeviceIndex device) const override {
      return defaults[static_cast<std::size_t>(device)];
    }
    at::Generator getNewGenerator(c10::DeviceIndex) const override { return at::detail::createCPUGenerator(); }

    std::vector<at::Generator> defaults{at::detail::createCPUGenerator(1), at::detail::createCPUGenerator(1),
                                        at::detail::createCPUGenerator(1)};
  };
};

}  // namespace rehearse::torch_state
