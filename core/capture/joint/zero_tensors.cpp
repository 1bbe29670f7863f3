// SPDX-License-Identifier: BSD-3-Clause
#include "capture/joint/zero_tensors.h"

#include <string>

#include <rehearse_internal/capture/fake_tensor.h>

namespace rehearse::capture {
namespace {

bool holds_fake_tensor(const c10::IValue& value) {
  return value.isTensor() && value.toTensor().defined() && is_fake(value.toTensor());
}

bool is_view(const c10::FunctionSchema& schema) {
  const auto& returns = schema.returns();
  return !schema.is_mutable() && !returns.empty() && returns.front().alias_info() != nullptr;
}

}  // namespace

bool ZeroTensors::has(const c10::IValue& value) const {
  return holds_fake_tensor(value) && zeros_.contains(fake_id(value.toTensor()));
}

// Notes the results of operators for which LibTorch has kernels for ZeroTensors. Other operators turn ZeroTensors into
// zeros in memory.
void ZeroTensors::note(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments,
                       c10::ArrayRef<c10::IValue> results) {
  if (results.size() != 1 || !holds_fake_tensor(results[0])) return;
  const std::uint64_t result = fake_id(results[0].toTensor());
  const std::string& name = op.schema().name();
  if (name == "aten::_efficientzerotensor") {
    zeros_.insert(result);
    return;
  }
  if (zeros_.empty()) return;
  bool is_zero = false;
  if (name == "aten::mul") {
    is_zero = has(arguments[0]) || has(arguments[1]);
  } else if (name == "aten::add" || name == "aten::add_" || name == "aten::sub") {
    is_zero = has(arguments[0]) && has(arguments[1]);
  } else if (name == "aten::div" || is_view(op.schema())) {
    is_zero = !arguments.empty() && has(arguments[0]);
  }
  if (is_zero) {
    zeros_.insert(result);
  } else {
    zeros_.erase(result);
  }
}

c10::OperatorHandle ZeroTensors::callable(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments) const {
  const c10::FunctionSchema& schema = op.schema();
  if (schema.name() != "aten::add_" || schema.overload_name() != "Tensor" || !has(arguments[0])) return op;
  return c10::Dispatcher::singleton().findSchemaOrThrow("aten::add", "Tensor");
}

}  // namespace rehearse::capture
