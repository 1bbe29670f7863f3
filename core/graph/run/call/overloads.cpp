// SPDX-License-Identifier: BSD-3-Clause
#include "graph/run/call/overloads.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <unordered_map>

#include <ATen/core/jit_type.h>

#include <rehearse/graph/errors.h>
#include <rehearse/graph/node.h>

#include "graph/run/call/overload_cost.h"

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
