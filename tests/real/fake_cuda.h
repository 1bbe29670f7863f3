// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <ATen/core/Tensor.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace rehearse::real {

// Devices of type "cuda" in host memory, as LibTorch sees them. Streams run their work in order, when the test lets
// them. Registered in place of libc10_cuda; one object per process.
class FakeCuda final : public c10::impl::DeviceGuardImplInterface {
 public:
  // Work of a stream. Returns whether the work is done. If it is not done, FakeCuda calls the step again later.
  using Step = std::function<bool()>;

  static FakeCuda& instance();

  void reset(int devices);
  bool held = false;              // true: nothing runs
  std::optional<int> hung;        // the device on which nothing runs
  std::string lost;               // if not empty, every query of an event throws this
  std::uint64_t events_made = 0;  // since the reset

  void enqueue(c10::Stream stream, Step step);
  void enqueue(void* native_handle, Step step);

  void run();

  c10::DeviceType type() const override { return c10::DeviceType::CUDA; }
  c10::Device exchangeDevice(c10::Device device) const override;
  c10::Device getDevice() const override;
  void setDevice(c10::Device device) const override;
  void uncheckedSetDevice(c10::Device device) const noexcept override;
  c10::Stream getStream(c10::Device device) const override;
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool high_priority) const override;
  c10::Stream exchangeStream(c10::Stream stream) const override;
  void* getStreamNativeHandle(const c10::Stream stream) const override;
  c10::DeviceIndex deviceCount() const noexcept override { return static_cast<c10::DeviceIndex>(devices_); }
  void destroyEvent(void* event, const c10::DeviceIndex device) const noexcept override;
  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex device,
              const c10::EventFlag flag) const override;
  void block(void* event, const c10::Stream& stream) const override;
  bool queryEvent(void* event) const override;
  double elapsedTime(void* begin, void* end, const c10::DeviceIndex device) const override;

 private:
  using Key = std::pair<c10::DeviceIndex, c10::StreamId>;

  struct Event;

  static Key key_of(const c10::Stream& stream) { return {stream.device_index(), stream.id()}; }
  FakeCuda& self() const { return const_cast<FakeCuda&>(*this); }

  int devices_ = 0;
  std::map<Key, std::deque<Step>> streams_;
  std::map<c10::DeviceIndex, c10::StreamId> current_;
  c10::StreamId next_stream_ = 1;
  std::uint64_t time_ = 0;  // counts finished steps
  bool running_ = false;
};

// Copies values to a device and back, without using the devices' streams.
at::Tensor on_device(const at::Tensor& host, int device);
at::Tensor on_host(const at::Tensor& tensor);

}  // namespace rehearse::real
