// SPDX-License-Identifier: BSD-3-Clause
#include "capture/fake/infer/sampling.h"

#include <algorithm>
#include <set>

#include <rehearse_internal/shapes/shape_env.h>
#include <rehearse_internal/shapes/sym_node.h>

namespace rehearse::capture {
namespace {

void add(CallSymbols& symbols, const c10::SymInt& value) {
  if (!value.is_symbolic()) return;
  const shapes::Expr expr = shapes::expr_of(value);
  if (expr.is_number()) return;
  auto& all = symbols.expressions;
  if (std::find(all.begin(), all.end(), expr) != all.end()) return;
  all.push_back(expr);
  for (const std::string& name : expr.symbols()) symbols.names.push_back(name);
}

void add(CallSymbols& symbols, const c10::IValue& value) {
  for_each_tensor(value, [&](const at::Tensor& tensor) {
    for (const c10::SymInt& size : tensor.sym_sizes()) add(symbols, size);
    for (const c10::SymInt& stride : tensor.sym_strides()) add(symbols, stride);
    add(symbols, tensor.sym_storage_offset());
  });
  if (value.isSymInt()) add(symbols, value.toSymInt());
  if (!value.isList() || value.isTensorList()) return;
  for (const c10::IValue& item : value.toListRef()) {
    if (item.isSymInt()) add(symbols, item.toSymInt());
  }
}

shapes::ValueOf lookup(const Assignment& values, const shapes::ValueOf& others) {
  return [&values, others](const std::string& name) -> std::optional<std::int64_t> {
    const auto found = values.find(name);
    return found == values.end() ? others(name) : found->second;
  };
}

bool satisfies(const Assignment& values, const shapes::ShapeEnv& shapes) {
  const shapes::ValueOf value = lookup(values, shapes.hints());
  const auto holds_at = [&](const shapes::Guard& guard) { return guard.condition.evaluate(value).value_or(true); };
  return std::all_of(shapes.guards().begin(), shapes.guards().end(), holds_at) &&
         std::all_of(shapes.asserts().begin(), shapes.asserts().end(), holds_at);
}

}  // namespace

CallSymbols symbols_of(const Call& call) {
  CallSymbols symbols;
  for (const c10::IValue& value : call.arguments) add(symbols, value);
  std::sort(symbols.names.begin(), symbols.names.end());
  symbols.names.erase(std::unique(symbols.names.begin(), symbols.names.end()), symbols.names.end());
  return symbols;
}

std::int64_t value_at(const shapes::Expr& expr, const Assignment& values) {
  return expr.evaluate(lookup(values, [](const std::string&) { return std::nullopt; })).value();
}

std::vector<Assignment> assignments_for(const CallSymbols& symbols, const shapes::ShapeEnv& shapes,
                                        std::size_t wanted) {
  constexpr int kTries = 2000;
  std::set<Assignment> seen;
  std::vector<Assignment> found;
  std::uint32_t state = 12345;
  for (int i = 0; i < kTries && found.size() < wanted; ++i) {
    Assignment values;
    for (const std::string& name : symbols.names) {
      state = state * 1103515245U + 12345U;
      const std::int64_t drawn = 2 + (state >> 16U) % 15U;
      // A multiple of the hint satisfies guards of divisibility more often than a random number.
      const std::int64_t hint = shapes.hints()(name).value_or(1);
      values[name] = i % 2 == 0 || hint > 64 ? drawn : hint * (1 + drawn % 4);
    }
    if (satisfies(values, shapes) && seen.insert(values).second) found.push_back(std::move(values));
  }
  return found;
}

}  // namespace rehearse::capture
