// SPDX-License-Identifier: BSD-3-Clause
#include "fake_cuda.h"

#include <memory>

#include <ATen/ATen.h>
#include <c10/util/Exception.h>

namespace rehearse::real {
namespace {

thread_local c10::DeviceIndex t_device = 0;

}  // namespace

// An event that is recorded again marks the later position.
struct FakeCuda::Event {
  struct Place {
    bool passed = false;
    std::uint64_t at = 0;
  };
  std::shared_ptr<Place> place;
};

FakeCuda& FakeCuda::instance() {
  static FakeCuda* const made = [] {
    auto* const guard = new FakeCuda;
    c10::impl::device_guard_impl_registry[static_cast<std::size_t>(c10::DeviceType::CUDA)].store(guard);
    return guard;
  }();
  return *made;
}

void FakeCuda::reset(int devices) {
  devices_ = devices;
  streams_.clear();
  current_.clear();
  held = false;
  hung.reset();
  lost.clear();
  events_made = 0;
  t_device = 0;
}

void FakeCuda::enqueue(c10::Stream stream, Step step) {
  streams_[key_of(stream)].push_back(std::move(step));
  run();
}

// A handle is (device + 1) * 1000 + stream.
void* FakeCuda::getStreamNativeHandle(const c10::Stream stream) const {
  return reinterpret_cast<void*>((static_cast<std::uintptr_t>(stream.device_index()) + 1) * 1000 +
                                 static_cast<std::uintptr_t>(stream.id()));
}

void FakeCuda::enqueue(void* native_handle, Step step) {
  const auto number = reinterpret_cast<std::uintptr_t>(native_handle);
  const auto device = static_cast<c10::DeviceIndex>(number / 1000 - 1);
  enqueue(c10::Stream(c10::Stream::UNSAFE, c10::Device(c10::kCUDA, device), static_cast<c10::StreamId>(number % 1000)),
          std::move(step));
}

void FakeCuda::run() {
  if (held || running_) return;
  running_ = true;
  for (bool any = true; any;) {
    any = false;
    for (auto& [key, steps] : streams_) {
      if (hung == key.first) continue;
      while (!steps.empty() && steps.front()()) {
        steps.pop_front();
        ++time_;
        any = true;
      }
    }
  }
  running_ = false;
}

c10::Device FakeCuda::exchangeDevice(c10::Device device) const {
  return {c10::kCUDA, std::exchange(t_device, device.index())};
}
c10::Device FakeCuda::getDevice() const { return {c10::kCUDA, t_device}; }
void FakeCuda::setDevice(c10::Device device) const {
  TORCH_CHECK(device.index() < devices_, "there is no device ", device);
  t_device = device.index();
}
void FakeCuda::uncheckedSetDevice(c10::Device device) const noexcept { t_device = device.index(); }

c10::Stream FakeCuda::getStream(c10::Device device) const {
  const auto found = current_.find(device.index());
  return c10::Stream(c10::Stream::UNSAFE, device, found != current_.end() ? found->second : 0);
}
c10::Stream FakeCuda::getStreamFromGlobalPool(c10::Device device, bool) const {
  return c10::Stream(c10::Stream::UNSAFE, device, self().next_stream_++);
}
c10::Stream FakeCuda::exchangeStream(c10::Stream stream) const {
  const auto before = getStream(stream.device());
  self().current_[stream.device_index()] = stream.id();
  return before;
}

void FakeCuda::destroyEvent(void* event, const c10::DeviceIndex) const noexcept { delete static_cast<Event*>(event); }

void FakeCuda::record(void** event, const c10::Stream& stream, const c10::DeviceIndex, const c10::EventFlag) const {
  if (*event == nullptr) {
    *event = new Event;
    ++self().events_made;
  }
  const auto place = std::make_shared<Event::Place>();
  static_cast<Event*>(*event)->place = place;
  self().enqueue(stream, [this, place] {
    place->passed = true;
    place->at = time_;
    return true;
  });
}

void FakeCuda::block(void* event, const c10::Stream& stream) const {
  const auto place = static_cast<Event*>(event)->place;
  self().enqueue(stream, [place] { return place->passed; });
}

bool FakeCuda::queryEvent(void* event) const {
  TORCH_CHECK(lost.empty(), lost);
  return event == nullptr || static_cast<Event*>(event)->place->passed;
}

double FakeCuda::elapsedTime(void* begin, void* end, const c10::DeviceIndex) const {
  return static_cast<double>(static_cast<Event*>(end)->place->at - static_cast<Event*>(begin)->place->at);
}

at::Tensor on_device(const at::Tensor& host, int device) {
  const auto kept = host.clone();
  const c10::Device target(c10::kCUDA, static_cast<c10::DeviceIndex>(device));
  return at::from_blob(
      kept.data_ptr(), kept.sizes(), kept.strides(), [kept](void*) {}, kept.options().device(target), target);
}

at::Tensor on_host(const at::Tensor& tensor) {
  return at::from_blob(tensor.mutable_data_ptr(), tensor.sizes(), tensor.strides(), tensor.options().device(c10::kCPU))
      .clone();
}

}  // namespace rehearse::real
