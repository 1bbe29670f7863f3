// SPDX-License-Identifier: BSD-3-Clause
#include "compile/symbol_guards.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace rehearse::compiler {
namespace {

std::string text_of_range(const shapes::Range& range) {
  std::string text;
  if (range.lower != shapes::Range::kUnboundedBelow) text = fmt::format("at least {}", range.lower);
  if (range.upper == shapes::Range::kUnboundedAbove) return text;
  return fmt::format("{}{}at most {}", text, text.empty() ? "" : " and ", range.upper);
}

}  // namespace

SymbolGuards::SymbolGuards(const std::vector<SymbolPlace>& sources, const shapes::ShapeEnv& shapes)
    : guards_(shapes.guards()) {
  const auto index_of = [this](const std::string& name) {
    for (std::uint32_t i = 0; i < symbols_.size(); ++i) {
      if (symbols_[i].name == name) return i;
    }
    symbols_.push_back({name, {}});
    return static_cast<std::uint32_t>(symbols_.size() - 1);
  };
  for (const SymbolPlace& source : sources) {
    sources_.push_back({index_of(source.symbol), source.leaf, source.dimension, source.name});
  }
  for (const shapes::BackedSymbol& symbol : shapes.backed()) {
    for (Symbol& own : symbols_) {
      if (own.name == symbol.name) own.range = symbol.range;
    }
  }
}

std::string SymbolGuards::in_words(const shapes::Condition& condition) const {
  // Each symbol by the first place in which it is found.
  std::string text = condition.text();
  std::string words;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i;
    while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_')) ++end;
    if (end == i) {
      words += text[i++];
      continue;
    }
    const std::string word = text.substr(i, end - i);
    const auto source = std::find_if(sources_.begin(), sources_.end(),
                                     [&](const Source& each) { return symbols_[each.symbol].name == word; });
    words += source == sources_.end() ? word : source->name;
    i = end;
  }
  return words;
}

std::vector<std::string> SymbolGuards::texts() const {
  std::vector<std::string> texts;
  for (const shapes::Guard& guard : guards_) {
    std::string text = in_words(guard.condition);
    if (const std::string line = guard.where.describe(); !line.empty()) text += " (" + line + ")";
    texts.push_back(std::move(text));
  }
  return texts;
}

bool SymbolGuards::holds(const LeafList& leaves, GuardFailure* failure) const {
  if (sources_.empty()) return true;
  c10::SmallVector<std::optional<std::int64_t>, 16> values(symbols_.size(), std::nullopt);
  for (const Source& source : sources_) {
    const Leaf& leaf = leaves[source.leaf];
    const std::int64_t value = source.dimension < 0 ? leaf.sym_int->as_int_unchecked()
                                                    : leaf.tensor->unsafeGetTensorImpl()->sizes()[source.dimension];
    std::optional<std::int64_t>& known = values[source.symbol];
    if (known && *known != value) {
      if (failure) *failure = {source.name, std::to_string(*known), std::to_string(value), ""};
      return false;
    }
    known = value;
    const shapes::Range& range = symbols_[source.symbol].range;
    if (range.contains(value)) continue;
    if (failure) *failure = {source.name, text_of_range(range), std::to_string(value), ""};
    return false;
  }
  if (guards_.empty()) return true;
  const auto value_of = [&](const std::string& name) -> std::optional<std::int64_t> {
    for (std::size_t i = 0; i < symbols_.size(); ++i) {
      if (symbols_[i].name == name) return values[i];
    }
    return std::nullopt;
  };
  for (const shapes::Guard& guard : guards_) {
    // A guard on a symbol that no argument in use has cannot fail: nothing that was recorded hangs on it.
    if (guard.condition.evaluate(value_of).value_or(true)) continue;
    if (failure) *failure = {in_words(guard.condition), "true", "false", guard.where.describe()};
    return false;
  }
  return true;
}

}  // namespace rehearse::compiler
