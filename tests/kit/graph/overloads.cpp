// SPDX-License-Identifier: BSD-3-Clause
#include "kit/graph/overloads.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <unordered_map>

#include <ATen/core/function_schema.h>
#include <ATen/core/jit_type.h>

#include <rehearse/graph/errors.h>
#include <rehearse/graph/node.h>

namespace rehearse::graph {
namespace {

using Handles = std::vector<c10::OperatorHandle>;

// The overloads that LibTorch registers under aten, sorted by overload name. Operators of other namespaces are called
// by full name.
const Handles& handles_of(const std::string& name) {
  static const std::unordered_map<std::string, Handles> all = [] {
    std::unordered_map<std::string, Handles> found;
    std::vector<c10::OperatorName> names = c10::Dispatcher::singleton().getAllOpNames();
    std::sort(names.begin(), names.end(), [](const auto& left, const auto& right) {
      return std::tie(left.name, left.overload_name) < std::tie(right.name, right.overload_name);
    });
    for (const c10::OperatorName& known : names) {
      const auto op = known.name.starts_with("aten::") ? c10::Dispatcher::singleton().findSchema(known) : std::nullopt;
      if (op) found[known.name.substr(6)].push_back(*op);
    }
    return found;
  }();
  static const Handles none;
  const auto at = all.find(name);
  return at == all.end() ? none : at->second;
}

bool is_int_list(const c10::Argument& formal) {
  const auto* list = formal.type()->castRaw<c10::ListType>();
  return list != nullptr && list->getElementType()->kind() == c10::TypeKind::IntType;
}

// In Python, trailing ints may form the list if the operator has no other positional argument.
bool takes_trailing_ints(const c10::FunctionSchema& schema, std::size_t first) {
  const auto& formals = schema.arguments();
  return formals.size() > first && is_int_list(formals[first]) && !formals[first].kwarg_only() &&
         (formals.size() == first + 1 || formals[first + 1].kwarg_only());
}

// Collects trailing ints into a list if the operator accepts that.
List gathered(const c10::FunctionSchema& schema, const List& args, std::size_t first) {
  if (args.size() <= first || args[first].is<List>() || !takes_trailing_ints(schema, first)) return args;
  const auto begin = args.begin() + static_cast<std::ptrdiff_t>(first);
  List whole(args.begin(), begin);
  whole.emplace_back(List(begin, args.end()));
  return whole;
}

// In Python, `self` may be passed by keyword as `input`.
const Argument* named(const Dict& kwargs, const std::string& name) {
  for (const auto& [key, value] : kwargs) {
    if (key == name || (key == "input" && name == "self")) return &value;
  }
  return nullptr;
}

// The argument for each formal argument, null for defaults, and the cost.
struct Match {
  std::vector<const Argument*> given;
  int cost = 0;
};

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

// The cost of passing a value to an operator's argument, as Python's binding ranks it. 0: an exact fit. More: a
// conversion. Nothing: the value does not fit. If the argument is a node, the node's value counts.
std::optional<int> cost_of(const Argument& argument, const c10::Argument& formal, const ValueOf& value_of) {
  return cost_of(argument, *formal.real_type(), formal.N(), value_of);
}

// `(Tensor, int, keepdim=bool)`, for messages.
std::string describe(const List& args, const Dict& kwargs, const ValueOf& value_of) {
  std::string text;
  for (const Argument& argument : args)
    text += (text.empty() ? "" : ", ") + std::string(name_of(kind_of(argument, value_of)));
  for (const auto& [name, argument] : kwargs) {
    text += (text.empty() ? "" : ", ") + name + "=" + name_of(kind_of(argument, value_of));
  }
  return "(" + text + ")";
}

std::optional<Match> match(const c10::FunctionSchema& schema, const List& args, const Dict& kwargs,
                           const ValueOf& value_of) {
  Match found;
  std::size_t used = 0;
  for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
    const c10::Argument& formal = schema.arguments()[i];
    const bool by_position = i < args.size() && !formal.kwarg_only();
    const Argument* given = by_position ? &args[i] : named(kwargs, formal.name());
    found.given.push_back(given);
    if (given == nullptr) {
      if (!formal.default_value()) return std::nullopt;
      continue;
    }
    ++used;
    const std::optional<int> cost = cost_of(*given, formal, value_of);
    if (!cost) return std::nullopt;
    found.cost += *cost;
  }
  return used == args.size() + kwargs.size() ? std::optional(found) : std::nullopt;
}

}  // namespace

Overloads::Overloads(std::string_view name) : name_(name), overloads_(handles_of(name_)) {}

c10::IValue Overloads::call(const Node& node, const List& args, const Dict& kwargs, std::size_t first,
                            const ValueOf& value_of) const {
  const c10::OperatorHandle* best = nullptr;
  Match best_match;
  List best_args;
  for (const c10::OperatorHandle& op : overloads_) {
    List whole = gathered(op.schema(), args, first);
    std::optional<Match> found = match(op.schema(), whole, kwargs, value_of);
    if (!found || (best != nullptr && found->cost >= best_match.cost)) continue;
    best = &op;
    best_match = *std::move(found);
    best_args = std::move(whole);  // moving the list does not move its items
  }
  if (best == nullptr) {
    std::string schemas;
    for (const c10::OperatorHandle& op : overloads_) schemas += "\n  " + c10::toString(op.schema());
    throw GraphError(
        node.name(), "args",
        "no form of aten::" + name_ + " takes " + describe(args, kwargs, value_of) + "; there are" + schemas);
  }
  torch::jit::Stack stack;
  for (std::size_t i = 0; i < best_match.given.size(); ++i) {
    const c10::Argument& formal = best->schema().arguments()[i];
    const Argument* given = best_match.given[i];
    stack.push_back(given == nullptr ? *formal.default_value()
                                     : to_ivalue(*given, *formal.type(), formal.N(), value_of, node, formal.name()));
  }
  best->callBoxed(stack);
  if (stack.empty()) return {};
  if (stack.size() == 1) return std::move(stack[0]);
  return c10::ivalue::Tuple::create(std::move(stack));
}

}  // namespace rehearse::graph
