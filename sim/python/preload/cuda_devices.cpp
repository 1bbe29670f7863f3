// SPDX-License-Identifier: BSD-3-Clause
// The functions of torch that make a device from what Python code writes (a text, a type and a number, or a number
// alone), and that name and serve one. The dynamic linker prefers these to torch's, because this library is preloaded.
#include "python/preload/cuda_devices.h"

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include <dlfcn.h>

#include <ATen/core/TensorBase.h>
#include <c10/core/Device.h>

#include "exec/interpose/real.h"
#include "python/device/cuda.h"

#define REHEARSE_EMPTY_CPU \
  "_ZN2at6detail9empty_cpuEN3c108ArrayRefIlEENS1_10ScalarTypeEbSt8optionalINS1_12MemoryFormatEE"
#define REHEARSE_EMPTY_STRIDED_CPU "_ZN2at6detail17empty_strided_cpuEN3c108ArrayRefIlEES3_NS1_10ScalarTypeEb"
#define REHEARSE_READY_QUEUE "_ZN5torch8autograd6Engine11ready_queueESt10shared_ptrINS0_10ReadyQueueEEN3c106DeviceE"
#define REHEARSE_NAME_OF_DEVICE "_ZN3c1023get_privateuse1_backendB5cxx11Eb"
#define REHEARSE_DEVICE_HAS_NAME "_ZN3c1033is_privateuse1_backend_registeredEv"
#define REHEARSE_DEVICE_OF_TEXT(number) \
  "_ZN3c106DeviceC" number "ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"

namespace rehearse::python {

void device_of_text(c10::Device* device, const std::string& text) REHEARSE_INTERPOSES(REHEARSE_DEVICE_OF_TEXT("1"));
void base_of_text(c10::Device* device, const std::string& text) REHEARSE_INTERPOSES(REHEARSE_DEVICE_OF_TEXT("2"));
void* new_device(const c10::Device& device) REHEARSE_INTERPOSES("_Z13THPDevice_NewRKN3c106DeviceE");
std::optional<c10::DeviceType> accelerator(bool checked) REHEARSE_INTERPOSES("_ZN2at11accelerator14getAcceleratorEb");
void initialize(c10::DeviceType type) REHEARSE_INTERPOSES("_ZN5torch5utils16device_lazy_initEN3c1010DeviceTypeE");
at::TensorBase empty_cpu(c10::IntArrayRef size, c10::ScalarType type, bool is_pinned,
                         std::optional<c10::MemoryFormat> format) REHEARSE_INTERPOSES(REHEARSE_EMPTY_CPU);
at::TensorBase empty_strided_cpu(c10::IntArrayRef size, c10::IntArrayRef strides, c10::ScalarType type, bool is_pinned)
    REHEARSE_INTERPOSES(REHEARSE_EMPTY_STRIDED_CPU);
std::string name_of_device(bool is_lower_case) REHEARSE_INTERPOSES(REHEARSE_NAME_OF_DEVICE);
bool device_has_name() REHEARSE_INTERPOSES(REHEARSE_DEVICE_HAS_NAME);
// A member of torch's engine; `queue` stands for its type.
std::shared_ptr<void> ready_queue(void* engine, std::shared_ptr<void> queue, c10::Device device)
    REHEARSE_INTERPOSES(REHEARSE_READY_QUEUE);

namespace {

bool g_is_cpu = false;     // "cuda" means the CPU
bool g_is_device = false;  // "cuda" is a device of its own, with the CPU's memory

// A function of torch's. Python loads its libraries for itself alone, so it is not the linker's next definition.
template <class Function>
class OfTorch {
 public:
  constexpr OfTorch(const char* library, const char* symbol) : library_(library), symbol_(symbol) {}

  template <class... Arguments>
  auto operator()(Arguments&&... arguments) {
    return find()(std::forward<Arguments>(arguments)...);
  }
  Function find() {
    if (function_ != nullptr) return function_;
    void* const library = dlopen(library_, RTLD_NOLOAD | RTLD_LAZY);
    function_ = library == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(library, symbol_));
    if (function_ == nullptr)
      throw std::runtime_error(std::string("rehearse --cuda: ") + library_ + " of this torch has no " + symbol_);
    return function_;
  }

 private:
  const char* library_;
  const char* symbol_;
  Function function_ = nullptr;
};

constinit OfTorch<void (*)(c10::Device*, const std::string&)> g_device_of_text("libc10.so",
                                                                               REHEARSE_DEVICE_OF_TEXT("1"));
constinit OfTorch<void* (*)(const c10::Device&)> g_new_device("libtorch_python.so", "_Z13THPDevice_NewRKN3c106DeviceE");
constinit OfTorch<std::optional<c10::DeviceType> (*)(bool)> g_accelerator("libtorch_cpu.so",
                                                                          "_ZN2at11accelerator14getAcceleratorEb");
constinit OfTorch<void (*)(c10::DeviceType)> g_initialize("libtorch_python.so",
                                                          "_ZN5torch5utils16device_lazy_initEN3c1010DeviceTypeE");

constinit OfTorch<decltype(&name_of_device)> g_name_of_device("libc10.so", REHEARSE_NAME_OF_DEVICE);
constinit OfTorch<decltype(&device_has_name)> g_device_has_name("libc10.so", REHEARSE_DEVICE_HAS_NAME);
constinit OfTorch<decltype(&ready_queue)> g_ready_queue("libtorch_cpu.so", REHEARSE_READY_QUEUE);
constinit OfTorch<decltype(&empty_cpu)> g_empty("libtorch_cpu.so", REHEARSE_EMPTY_CPU);
constinit OfTorch<decltype(&empty_strided_cpu)> g_empty_strided("libtorch_cpu.so", REHEARSE_EMPTY_STRIDED_CPU);

const void* library_of(const void* address) {
  Dl_info place{};
  return dladdr(address, &place) != 0 ? place.dli_fbase : nullptr;
}

}  // namespace

void device_of_text(c10::Device* device, const std::string& text) {
  g_device_of_text(device, text);
  if (g_is_cpu && device->is_cuda()) *device = c10::Device(c10::kCPU);
  if (g_is_device && device->is_cuda()) *device = c10::Device(kCuda, device->index());
}

void base_of_text(c10::Device* device, const std::string& text) { device_of_text(device, text); }

// torch.device("cuda", 1): the text is the CPU by now, and the number is left.
void* new_device(const c10::Device& device) {
  const bool is_cuda = device.is_cuda() || (device.is_cpu() && device.has_index());
  return g_new_device(g_is_cpu && is_cuda ? c10::Device(c10::kCPU) : device);
}

// device=1. LibTorch itself must not take the CPU for an accelerator.
std::optional<c10::DeviceType> accelerator(bool checked) {
  if (!g_is_cpu || !checked) return g_accelerator(checked);
  static const void* const bindings = library_of(reinterpret_cast<const void*>(g_new_device.find()));
  return library_of(__builtin_return_address(0)) == bindings ? c10::kCPU : g_accelerator(checked);
}

void initialize(c10::DeviceType type) {
  const bool is_cuda = (g_is_cpu && type == c10::kCUDA) || (g_is_device && type == kCuda);
  if (!is_cuda) g_initialize(type);
}

std::string name_of_device(bool is_lower_case) {
  if (!g_is_device) return g_name_of_device(is_lower_case);
  return is_lower_case ? "cuda" : "CUDA";
}

bool device_has_name() { return g_is_device || g_device_has_name(); }

// Torch has one thread for each device, which all ranks would share. The work is done when a call returns, so the rank
// itself can go on.
std::shared_ptr<void> ready_queue(void* engine, std::shared_ptr<void> queue, c10::Device device) {
  if (g_is_device) return queue;
  return g_ready_queue(engine, std::move(queue), device);
}

// pin_memory=True: the CPU's memory is near to itself.
at::TensorBase empty_cpu(c10::IntArrayRef size, c10::ScalarType type, bool is_pinned,
                         std::optional<c10::MemoryFormat> format) {
  return g_empty(size, type, is_pinned && !g_is_cpu && !g_is_device, format);
}

at::TensorBase empty_strided_cpu(c10::IntArrayRef size, c10::IntArrayRef strides, c10::ScalarType type,
                                 bool is_pinned) {
  return g_empty_strided(size, strides, type, is_pinned && !g_is_cpu && !g_is_device);
}

void let_cuda_be_cpu() {
  g_device_of_text.find();
  g_new_device.find();
  g_accelerator.find();
  g_initialize.find();
  g_is_cpu = true;
}

void let_cuda_be_device() {
  g_device_of_text.find();
  g_name_of_device.find();
  g_ready_queue.find();
  register_cuda();
  g_is_device = true;
}

}  // namespace rehearse::python
