// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/operators/generator_state.h>

#include <mutex>

#include <ATen/Context.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <rehearse_internal/operators/capture_mode.h>

namespace rehearse::operators {
namespace {

at::Tensor read_state(c10::Device device) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.get_state();
}

void write_state(const at::Tensor& state, c10::Device device) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_state(state);
}

// Registered when they are used first, and never taken back: LibTorch's dispatcher may be gone before us.
struct Operators {
  torch::Library library{torch::Library::FRAGMENT, "rehearse", std::nullopt, __FILE__, __LINE__};
  c10::TypedOperatorHandle<at::Tensor(c10::Device)> read;
  c10::TypedOperatorHandle<void(const at::Tensor&, c10::Device)> write;

  Operators()
      : read(define<at::Tensor(c10::Device)>("generator_state", "(Device device) -> Tensor", &read_state)),
        write(define<void(const at::Tensor&, c10::Device)>("set_generator_state", "(Tensor state, Device device) -> ()",
                                                           &write_state)) {}

 private:
  template <class Signature, class Kernel>
  c10::TypedOperatorHandle<Signature> define(const std::string& name, const std::string& signature, Kernel kernel) {
    library.def((name + signature).c_str());
    library.impl(name.c_str(), torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, kernel));
    return c10::Dispatcher::singleton().findSchemaOrThrow(("rehearse::" + name).c_str(), "").typed<Signature>();
  }
};

const Operators& registered() {
  static const auto* const all = new Operators();
  return *all;
}

}  // namespace

at::Tensor generator_state(c10::Device device) {
  return CaptureMode::current() != nullptr ? registered().read.call(device) : read_state(device);
}

void set_generator_state(const at::Tensor& state, c10::Device device) {
  if (CaptureMode::current() == nullptr) return write_state(state, device);
  registered().write.call(state, device);
}

}  // namespace rehearse::operators
