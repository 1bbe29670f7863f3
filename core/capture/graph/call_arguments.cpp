// SPDX-License-Identifier: BSD-3-Clause
#include "capture/graph/call_arguments.h"

#include <complex>
#include <utility>

#include <ATen/core/jit_type.h>

#include <rehearse_internal/capture/errors.h>

#include "graph/run/call/communication.h"

namespace rehearse::capture {

using graph::Argument;

namespace {

Argument integer(const c10::IValue& value, const c10::Type& type, const ArgumentContext& context) {
  switch (type.kind()) {
    case c10::TypeKind::ScalarTypeType:
      return value.toScalarType();
    case c10::TypeKind::LayoutType:
      return value.toLayout();
    case c10::TypeKind::MemoryFormatType:
      return value.toMemoryFormat();
    default:
      return value.isSymInt() ? context.expressions.of(value.toSymInt()) : Argument(value.toInt());
  }
}

Argument list(const c10::IValue& value, const c10::Type& type, const ArgumentContext& context) {
  const auto* list_type = type.castRaw<c10::ListType>();
  graph::List items;
  for (const c10::IValue& item : value.toListRef()) {
    items.push_back(to_argument(item, list_type ? *list_type->getElementType() : type, context));
  }
  return items;
}

Argument symbolic_float(const c10::IValue& value, const ArgumentContext& context) {
  const c10::SymFloat number = value.toSymFloat();
  if (!number.is_symbolic()) return number.as_float_unchecked();
  throw NotCapturable("a floating-point number depends on a symbolic size",
                      "Compute it with operators on tensors, or of the size as a number.", context.site);
}

}  // namespace

Argument to_argument(const c10::IValue& value, const c10::Type& type, const ArgumentContext& context) {
  if (const auto* optional = type.castRaw<c10::OptionalType>()) {
    return to_argument(value, *optional->getElementType(), context);
  }
  if (value.isNone()) return {};
  if (value.isTensor()) return value.toTensor().defined() ? context.tensor_of(value.toTensor()) : Argument();
  if (value.isInt() || value.isSymInt()) return integer(value, type, context);
  if (value.isDouble()) return value.toDouble();
  if (value.isSymFloat()) return symbolic_float(value, context);
  if (value.isBool()) return value.toBool();
  if (value.isSymBool()) return value.toSymBool().guard_bool(__FILE__, __LINE__);
  if (value.isComplexDouble()) {
    const c10::complex<double> number = value.toComplexDouble();
    return std::complex<double>(number.real(), number.imag());
  }
  if (value.isString()) return value.toStringRef();
  if (value.isDevice()) return value.toDevice();
  if (value.isList()) return list(value, type, context);
  if (value.isCustomClass()) {
    if (auto text = graph::text_of_object(value)) return *std::move(text);
  }
  throw NotCapturable("an operator was given a " + value.tagKind() + ", which no graph can hold",
                      value.isGenerator()
                          ? "Draw from the default generator, which is each rank's own."
                          : "Put the call into a rehearse::eager_region(). Process groups must be known to "
                            "c10d::resolve_process_group() by their names.",
                      context.site);
}

CallArguments to_arguments(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> values,
                           const ArgumentContext& context) {
  CallArguments call;
  std::size_t needed = 0;  // number of positional arguments up to the last one that differs from its default
  for (std::size_t i = 0; i < values.size(); ++i) {
    const c10::Argument& formal = schema.arguments()[i];
    Argument argument = to_argument(values[i], *formal.real_type(), context);
    const bool is_default =
        formal.default_value() && argument == to_argument(*formal.default_value(), *formal.real_type(), context);
    if (!formal.kwarg_only()) {
      call.args.push_back(std::move(argument));
      if (!is_default) needed = call.args.size();
    } else if (!is_default) {
      call.kwargs.emplace_back(formal.name(), std::move(argument));
    }
  }
  call.args.resize(needed);
  return call;
}

}  // namespace rehearse::capture
