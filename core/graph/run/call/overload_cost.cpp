// SPDX-License-Identifier: BSD-3-Clause
#include "graph/run/call/overload_cost.h"

#include <ATen/core/jit_type.h>

namespace rehearse::graph {
namespace {

enum class Kind { None, Tensor, Bool, Int, Float, Complex, String, Dtype, Device, Layout, MemoryFormat, List, Other };

constexpr int kConverted = 1;
constexpr int kNumberForTensor = 10;  // `x * 2`: an overload that takes the number itself is better

Kind kind_of(const c10::IValue& value) {
  if (value.isNone()) return Kind::None;
  if (value.isTensor()) return Kind::Tensor;
  if (value.isBool()) return Kind::Bool;
  if (value.isInt()) return Kind::Int;
  if (value.isDouble()) return Kind::Float;
  if (value.isComplexDouble()) return Kind::Complex;
  if (value.isString()) return Kind::String;
  if (value.isDevice()) return Kind::Device;
  if (value.isList() || value.isTuple()) return Kind::List;
  return Kind::Other;
}

Kind kind_of(const Argument& argument, const ValueOf& value_of) {
  if (const Node* node = argument.node()) return kind_of(value_of(*node));
  if (argument.is_none()) return Kind::None;
  if (argument.is<bool>()) return Kind::Bool;
  if (argument.is<std::int64_t>()) return Kind::Int;
  if (argument.is<double>()) return Kind::Float;
  if (argument.is<std::complex<double>>()) return Kind::Complex;
  if (argument.is<std::string>()) return Kind::String;
  if (argument.is<c10::ScalarType>()) return Kind::Dtype;
  if (argument.is<c10::Device>()) return Kind::Device;
  if (argument.is<c10::Layout>()) return Kind::Layout;
  if (argument.is<c10::MemoryFormat>()) return Kind::MemoryFormat;
  if (argument.is<List>()) return Kind::List;
  return Kind::Other;
}

std::optional<int> exactly(bool fits) { return fits ? std::optional(0) : std::nullopt; }

std::optional<int> cost_of(Kind kind, c10::TypeKind wanted) {
  const bool is_number = kind == Kind::Bool || kind == Kind::Int || kind == Kind::Float || kind == Kind::Complex;
  switch (wanted) {
    case c10::TypeKind::TensorType:
      return is_number ? std::optional(kNumberForTensor) : exactly(kind == Kind::Tensor);
    case c10::TypeKind::NumberType:
      return exactly(is_number);
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
      return exactly(kind == Kind::Int);
    case c10::TypeKind::FloatType:
      return kind == Kind::Int ? std::optional(kConverted) : exactly(kind == Kind::Float);
    case c10::TypeKind::BoolType:
      return exactly(kind == Kind::Bool);
    case c10::TypeKind::StringType:
      return exactly(kind == Kind::String);
    case c10::TypeKind::DeviceObjType:
      return exactly(kind == Kind::Device);
    case c10::TypeKind::ScalarTypeType:
      return exactly(kind == Kind::Dtype);
    case c10::TypeKind::LayoutType:
      return exactly(kind == Kind::Layout);
    case c10::TypeKind::MemoryFormatType:
      return exactly(kind == Kind::MemoryFormat);
    default:
      return std::nullopt;
  }
}

std::optional<int> cost_of(const Argument& argument, const c10::Type& type, std::optional<std::int32_t> length,
                           const ValueOf& value_of);

// The cost of a list is the cost of its worst item.
std::optional<int> cost_of_list(const Argument& argument, const c10::Type& element, std::optional<std::int32_t> length,
                                const ValueOf& value_of) {
  int worst = 0;
  const auto take = [&worst](std::optional<int> cost) {
    if (cost) worst = std::max(worst, *cost);
    return cost.has_value();
  };
  if (const List* items = argument.get_if<List>()) {
    for (const Argument& item : *items) {
      if (!take(cost_of(item, element, std::nullopt, value_of))) return std::nullopt;
    }
    return worst;
  }
  const Node* node = argument.node();
  if (node != nullptr && kind_of(value_of(*node)) == Kind::List) {
    const c10::IValue& value = value_of(*node);
    const auto items = value.isTuple() ? value.toTupleRef().elements().vec() : value.toListRef().vec();
    for (const c10::IValue& item : items) {
      if (!take(cost_of(kind_of(item), element.kind()))) return std::nullopt;
    }
    return worst;
  }
  if (!length || !take(cost_of(argument, element, std::nullopt, value_of))) return std::nullopt;
  return worst + kConverted;
}

std::optional<int> cost_of(const Argument& argument, const c10::Type& type, std::optional<std::int32_t> length,
                           const ValueOf& value_of) {
  if (const auto* optional = type.castRaw<c10::OptionalType>()) {
    if (kind_of(argument, value_of) == Kind::None) return 0;
    return cost_of(argument, *optional->getElementType(), length, value_of);
  }
  if (const auto* list = type.castRaw<c10::ListType>())
    return cost_of_list(argument, *list->getElementType(), length, value_of);
  return cost_of(kind_of(argument, value_of), type.kind());
}

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::None:
      return "none";
    case Kind::Tensor:
      return "Tensor";
    case Kind::Bool:
      return "bool";
    case Kind::Int:
      return "int";
    case Kind::Float:
      return "float";
    case Kind::Complex:
      return "complex";
    case Kind::String:
      return "str";
    case Kind::Dtype:
      return "dtype";
    case Kind::Device:
      return "device";
    case Kind::Layout:
      return "layout";
    case Kind::MemoryFormat:
      return "memory format";
    case Kind::List:
      return "list";
    case Kind::Other:
      return "other";
  }
  return "other";
}

}  // namespace

std::optional<int> cost_of(const Argument& argument, const c10::Argument& formal, const ValueOf& value_of) {
  return cost_of(argument, *formal.real_type(), formal.N(), value_of);
}

std::string describe(const List& args, const Dict& kwargs, const ValueOf& value_of) {
  std::string text;
  for (const Argument& argument : args)
    text += (text.empty() ? "" : ", ") + std::string(name_of(kind_of(argument, value_of)));
  for (const auto& [name, argument] : kwargs) {
    text += (text.empty() ? "" : ", ") + name + "=" + name_of(kind_of(argument, value_of));
  }
  return "(" + text + ")";
}

}  // namespace rehearse::graph
