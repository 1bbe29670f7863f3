// SPDX-License-Identifier: BSD-3-Clause
#include "capture/graph/call_arguments.h"

#include <complex>
#include <utility>

#include <ATen/core/function_schema.h>

#include <rehearse/graph/errors.h>
#include <rehearse/graph/operators.h>

namespace rehearse::capture {
namespace {

using graph::Argument;

class Converter {
 public:
  Converter(const c10::OperatorHandle& op, const std::function<Argument(const at::Tensor&)>& tensor_of,
            ExpressionNodes& expressions)
      : op_(op), tensor_of_(tensor_of), expressions_(expressions) {}

  Argument convert(const c10::IValue& value, const c10::Argument& formal) {
    // The schema's own words: dtypes, layouts and memory formats are ints elsewhere.
    const c10::Type* type = formal.real_type().get();
    if (const auto* optional = type->castRaw<c10::OptionalType>()) type = optional->getElementType().get();
    if (value.isInt()) {
      if (type->kind() == c10::TypeKind::ScalarTypeType) return value.toScalarType();
      if (type->kind() == c10::TypeKind::LayoutType) return value.toLayout();
      if (type->kind() == c10::TypeKind::MemoryFormatType) return value.toMemoryFormat();
    }
    return convert_value(value, formal);
  }

 private:
  Argument convert_value(const c10::IValue& value, const c10::Argument& formal) {
    if (value.isNone()) return {};
    if (value.isTensor()) return value.toTensor().defined() ? tensor_of_(value.toTensor()) : Argument();
    if (value.isInt()) return value.toInt();
    if (value.isSymInt()) return expressions_.of(value.toSymInt());
    if (value.isDouble()) return value.toDouble();
    if (value.isBool()) return value.toBool();
    if (value.isString()) return value.toStringRef();
    if (value.isDevice()) return value.toDevice();
    if (value.isComplexDouble()) {
      const c10::complex<double> number = value.toComplexDouble();
      return std::complex<double>(number.real(), number.imag());
    }
    if (value.isList()) {
      graph::List items;
      for (const c10::IValue& item : value.toListRef()) items.push_back(convert_value(item, formal));
      return items;
    }
    throw graph::GraphError(
        "", c10::toString(op_.operator_name()) + ", argument '" + formal.name() + "'",
        "is a " + value.tagKind() + ", which a graph cannot hold; pass " +
            (value.isGenerator() ? "none: random numbers come from the rank's own generator" : "it another way"));
  }

  const c10::OperatorHandle& op_;
  const std::function<Argument(const at::Tensor&)>& tensor_of_;
  ExpressionNodes& expressions_;
};

bool is_default(const c10::IValue& value, const c10::Argument& formal) {
  if (!formal.default_value()) return false;
  const c10::IValue& given = *formal.default_value();
  if (value.isNone() || given.isNone()) return value.isNone() && given.isNone();
  if (value.isTensor() || given.isTensor() || value.isSymInt()) return false;
  if (value.isDouble() && given.isInt()) return value.toDouble() == static_cast<double>(given.toInt());
  if (value.isInt() && given.isInt()) return value.toInt() == given.toInt();
  return value.tagKind() == given.tagKind() && !value.isList() && value == given;
}

}  // namespace

CallArguments call_arguments(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments,
                             const std::function<Argument(const at::Tensor&)>& tensor_of,
                             ExpressionNodes& expressions) {
  const auto& formals = op.schema().arguments();
  std::size_t positional = 0;  // up to here arguments must be there
  for (std::size_t i = 0; i < formals.size(); ++i) {
    if (!formals[i].kwarg_only() && !is_default(arguments[i], formals[i])) positional = i + 1;
  }
  Converter converter(op, tensor_of, expressions);
  CallArguments call;
  for (std::size_t i = 0; i < formals.size(); ++i) {
    if (formals[i].kwarg_only()) {
      if (is_default(arguments[i], formals[i])) continue;
      call.kwargs.emplace_back(formals[i].name(), converter.convert(arguments[i], formals[i]));
    } else if (i < positional) {
      call.args.push_back(converter.convert(arguments[i], formals[i]));
    }
  }
  return call;
}

}  // namespace rehearse::capture
