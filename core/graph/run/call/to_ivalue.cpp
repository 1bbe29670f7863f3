// SPDX-License-Identifier: BSD-3-Clause
#include "graph/run/call/to_ivalue.h"

#include <algorithm>

#include <ATen/ScalarOps.h>
#include <ATen/core/jit_type.h>

#include <rehearse/graph/errors.h>
#include <rehearse/graph/node.h>

#include "graph/run/call/communication.h"

namespace rehearse::graph {
namespace {

struct Target {
  const ValueOf& value_of;
  const Node& node;
  const std::string& field;

  [[noreturn]] void fail(const std::string& message) const { throw GraphError(node.name(), field, message); }
};

// Makes a tensor of a number, as PyTorch's Python binding does. Type promotion treats the tensor as a number. Calls no
// operator, because a capture would record it.
at::Tensor wrapped_number(const at::Scalar& number) { return at::native::wrapped_scalar_tensor(number); }

bool is_number(const c10::IValue& value) {
  return value.isInt() || value.isDouble() || value.isBool() || value.isComplexDouble() || value.isSymInt() ||
         value.isSymFloat() || value.isSymBool();
}

// Converts a scalar value to the schema's type; nothing if that is impossible.
std::optional<c10::IValue> coerce(const c10::IValue& value, const c10::Type& type) {
  switch (type.kind()) {
    case c10::TypeKind::TensorType:
      if (value.isTensor()) return value;
      if (value.isNone()) return c10::IValue(at::Tensor());
      if (is_number(value)) return c10::IValue(wrapped_number(value.toScalar()));
      return std::nullopt;
    case c10::TypeKind::IntType:
      if (value.isInt() || value.isSymInt()) return value;
      if (value.isBool()) return c10::IValue(static_cast<std::int64_t>(value.toBool()));
      return std::nullopt;
    case c10::TypeKind::FloatType:
      if (value.isDouble() || value.isSymFloat()) return value;
      if (value.isInt()) return c10::IValue(static_cast<double>(value.toInt()));
      if (value.isBool()) return c10::IValue(value.toBool() ? 1.0 : 0.0);
      return std::nullopt;
    case c10::TypeKind::NumberType:
      if (is_number(value)) return value;
      if (value.isTensor() && value.toTensor().numel() == 1) return c10::IValue(value.toTensor().item());
      return std::nullopt;
    case c10::TypeKind::BoolType:
      if (value.isBool() || value.isSymBool()) return value;
      return std::nullopt;
    case c10::TypeKind::StringType:
      if (value.isString()) return value;
      return std::nullopt;
    case c10::TypeKind::DeviceObjType:
      if (value.isDevice()) return value;
      return std::nullopt;
    case c10::TypeKind::ListType:
      if (value.isList()) return value;
      return std::nullopt;
    case c10::TypeKind::ClassType:
      if (value.isString()) return object_of_text(value.toStringRef(), type);
      return value;
    default:
      return value;
  }
}

c10::IValue convert(const Argument& argument, const c10::Type& type, std::optional<std::int32_t> length,
                    const Target& target);

// If an item of the list is a SymInt, returns the list with the element type SymInt. The type in the schema is only
// "int", and LibTorch would read the items of a list of ints as plain numbers. Returns other lists as they are.
c10::IValue with_symbols(const c10::impl::GenericList& list) {
  const bool has_symbols = std::ranges::any_of(list, [](const c10::IValue& item) { return item.isSymInt(); });
  if (!has_symbols) return list;
  c10::impl::GenericList symbolic(c10::SymIntType::get());
  for (const c10::IValue& item : list) symbolic.push_back(item.toSymInt());
  return symbolic;
}

c10::IValue convert_list(const Argument& argument, const c10::ListType& type, std::optional<std::int32_t> length,
                         const Target& target) {
  const c10::TypePtr& element = type.getElementType();
  c10::impl::GenericList list(element);
  if (const List* items = argument.get_if<List>()) {
    list.reserve(items->size());
    for (const Argument& item : *items) list.push_back(convert(item, *element, std::nullopt, target));
    return with_symbols(list);
  }
  if (Node* source = argument.node()) {
    const c10::IValue& value = target.value_of(*source);
    if (value.isList()) return value;
    if (value.isTuple()) {
      for (const c10::IValue& item : value.toTupleRef().elements()) {
        std::optional<c10::IValue> coerced = coerce(item, *element);
        if (!coerced) target.fail("an item of '" + source->name() + "' is no " + element->str());
        list.push_back(*std::move(coerced));
      }
      return with_symbols(list);
    }
  }
  if (!length) target.fail("must be " + type.str());
  const c10::IValue item = convert(argument, *element, std::nullopt, target);
  for (std::int32_t i = 0; i < *length; ++i) list.push_back(item);
  return with_symbols(list);
}

c10::IValue constant(const Argument& argument, const Target& target) {
  return std::visit(
      [&]<class T>(const T& value) -> c10::IValue {
        if constexpr (std::is_same_v<T, std::monostate>) {
          return {};
        } else if constexpr (std::is_same_v<T, Node*>) {
          return target.value_of(*value);
        } else if constexpr (std::is_same_v<T, std::complex<double>>) {
          return c10::complex<double>(value.real(), value.imag());
        } else if constexpr (std::is_same_v<T, c10::ScalarType> || std::is_same_v<T, c10::Layout> ||
                             std::is_same_v<T, c10::MemoryFormat>) {
          return static_cast<std::int64_t>(value);
        } else if constexpr (std::is_same_v<T, SymExpr>) {
          target.fail("the expression '" + value.text() + "' has no value here: pass it as a node");
        } else if constexpr (std::is_same_v<T, Ellipsis> || std::is_same_v<T, Slice>) {
          target.fail("a slice or ... can only index a list");
        } else if constexpr (std::is_same_v<T, List>) {
          std::vector<c10::IValue> items;
          for (const Argument& item : value) items.push_back(constant(item, target));
          return c10::ivalue::Tuple::create(std::move(items));
        } else if constexpr (std::is_same_v<T, Dict>) {
          c10::impl::GenericDict dict(c10::StringType::get(), c10::AnyType::get());
          for (const auto& [key, item] : value) dict.insert(key, constant(item, target));
          return dict;
        } else {
          return value;
        }
      },
      argument.value());
}

c10::IValue convert(const Argument& argument, const c10::Type& type, std::optional<std::int32_t> length,
                    const Target& target) {
  if (const auto* optional = type.castRaw<c10::OptionalType>()) {
    if (argument.is_none()) return {};
    if (Node* source = argument.node(); source != nullptr && target.value_of(*source).isNone()) return {};
    return convert(argument, *optional->getElementType(), length, target);
  }
  if (const auto* list = type.castRaw<c10::ListType>()) return convert_list(argument, *list, length, target);
  const c10::IValue value = constant(argument, target);
  std::optional<c10::IValue> coerced = coerce(value, type);
  if (!coerced) target.fail("must be " + type.str() + ", and is " + value.tagKind());
  return *std::move(coerced);
}

}  // namespace

c10::IValue to_ivalue(const Argument& argument, const c10::Type& type, std::optional<std::int32_t> length,
                      const ValueOf& value_of, const Node& node, const std::string& field) {
  return convert(argument, type, length, {value_of, node, field});
}

c10::IValue to_ivalue(const Argument& argument, const ValueOf& value_of, const Node& node, const std::string& field) {
  return constant(argument, {value_of, node, field});
}

}  // namespace rehearse::graph
