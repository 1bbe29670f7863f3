// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <variant>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/MemoryFormat.h>

#include <rehearse_internal/capture/fake_mode.h>
#include "capture/fake/call/operator_facts.h"
#include "capture/fake/call/tensors_in.h"

namespace rehearse::capture {

// The result for one return of an operator's schema. monostate: an undefined tensor or, if the return is an argument,
// that argument with its geometry unchanged.
struct Output {
  std::variant<std::monostate, TensorSpec, std::vector<TensorSpec>, c10::IValue> value;

  Output() = default;
  Output(TensorSpec spec) : value(std::move(spec)) {}
  Output(std::vector<TensorSpec> specs) : value(std::move(specs)) {}
  Output(c10::IValue other) : value(std::move(other)) {}
};
using Outputs = std::vector<Output>;

// An operator's call with fakes as its only tensors. Arguments are in the order of the schema.
struct Call {
  const OperatorFacts& facts;
  c10::ArrayRef<c10::IValue> arguments;
  FakeMode& mode;

  bool has(std::size_t i) const { return !arguments[i].isNone() && !(arguments[i].isTensor() && !tensor(i).defined()); }
  const at::Tensor& tensor(std::size_t i) const { return arguments[i].toTensor(); }
  std::vector<at::Tensor> tensors(std::size_t i) const { return arguments[i].toTensorVector(); }
  std::int64_t integer(std::size_t i) const { return arguments[i].toInt(); }
  bool boolean(std::size_t i) const { return arguments[i].toBool(); }
  c10::SymInt sym_int(std::size_t i) const { return arguments[i].toSymInt(); }
  std::vector<c10::SymInt> sym_ints(std::size_t i) const { return arguments[i].toSymIntVector(); }
  std::vector<std::int64_t> integers(std::size_t i) const { return arguments[i].toIntVector(); }
  c10::ScalarType dtype_or(std::size_t i, c10::ScalarType other) const {
    return arguments[i].isNone() ? other : arguments[i].toScalarType();
  }
};

// True if a size, stride or offset of a tensor, or a number or Boolean among the arguments, is a symbol.
bool has_symbols(const at::Tensor& tensor);
bool has_symbols(const c10::IValue& value);
bool has_symbols(const Call& call);

// The device of the results: the device argument, if given. Else the device of the first tensor that is not
// 0-dimensional, or, if all tensors are 0-dimensional, of the first tensor. The CPU if there is no tensor either.
c10::Device device_of(const Call& call);

}  // namespace rehearse::capture
