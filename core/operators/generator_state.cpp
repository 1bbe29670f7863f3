// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/operators/generator_state.h>

#include <mutex>

#include <ATen/Context.h>

#include <rehearse_internal/operators/capture_mode.h>
#include <rehearse_internal/operators/own_operator.h>

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

}  // namespace

at::Tensor generator_state(c10::Device device) {
  if (CaptureMode::current() == nullptr) return read_state(device);
  static const auto op = own_operator("generator_state", "(Device device) -> Tensor", &read_state, Derivative::none);
  return op.call(device);
}

void set_generator_state(const at::Tensor& state, c10::Device device) {
  if (CaptureMode::current() == nullptr) return write_state(state, device);
  static const auto op =
      own_operator("set_generator_state", "(Tensor state, Device device) -> ()", &write_state, Derivative::none);
  op.call(state, device);
}

}  // namespace rehearse::operators
