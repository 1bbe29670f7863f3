// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/operators/kernel_errors.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include <c10/util/Exception.h>

#include <rehearse_internal/capture/fake_errors.h>
#include <rehearse_internal/capture/fake_tensor.h>

#include "capture/fake/call/tensors_in.h"
#include "capture/trace/caller/call_stack.h"

namespace rehearse::capture {
namespace {

// Substrings of LibTorch's errors about fakes.
constexpr std::string_view kOfFakes[] = {
    "tried to directly modify sizes for customized tensor",
    "but its data is not allocated yet",
    "expects CPU tensor input",
    "must be a scalar tensor and on CPU",
    "got: meta",
    "got meta",
    "Meta Backend",
    "D meta ",
    "is on meta device",
    "does not support symbolic shapes",
    "SymIntArrayRef expected to contain only concrete",
    "when unpacking SymInt, expected int",
    "size_bytes_is_heap_allocated_",  // storage().nbytes() with a size that varies
    // index_reduce() throws this on Meta, but not on the CPU, for a tensor without elements.
    "select(): index 0 out of range for tensor of size [0]",
};

}  // namespace

bool is_about_a_fake(std::string_view message) {
  return std::any_of(std::begin(kOfFakes), std::end(kOfFakes),
                     [&](std::string_view part) { return message.find(part) != std::string_view::npos; });
}

void call_kernels(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  const std::string& name = op.operator_name().name;
  const auto refuse = [&](const std::string& message) {
    throw UnknownShape(name, "its kernel looks at the tensors themselves: " + message, call_stack());
  };
  try {
    op.callBoxed(stack);
  } catch (const c10::Error& error) {
    const std::string message = error.what_without_backtrace();
    if (!is_about_a_fake(message)) throw;
    refuse(message);
  } catch (const std::bad_optional_access&) {
    refuse("it asks for a size that is not known yet");
  }
  for (const c10::IValue& result : stack) {
    for_each_tensor(result, [&](const at::Tensor& tensor) {
      if (tensor.defined() && !is_fake(tensor))
        throw UnknownShape(name, "its kernel gives a real tensor", call_stack());
    });
  }
}

}  // namespace rehearse::capture
