// SPDX-License-Identifier: BSD-3-Clause
#include "compile/guards/symbol_guards.h"

#include <array>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rehearse::compiler {

SymbolGuards::SymbolGuards(std::vector<SymbolPosition> positions, std::shared_ptr<const shapes::ShapeEnv> shapes)
    : positions_(std::move(positions)), shapes_(std::move(shapes)), program_(*shapes_) {
  const auto& sources = shapes_->sources();
  TORCH_INTERNAL_ASSERT(positions_.size() == sources.size(), "each source of a symbol has a position");
  for (std::uint32_t i = 0; i < sources.size(); ++i) {
    hints_.push_back(shapes_->backed()[sources[i].symbol].hint);
    std::uint32_t twin = i;
    for (std::uint32_t j = 0; j < sources.size() && !positions_[i].is_used; ++j) {
      if (positions_[j].is_used && sources[j].symbol == sources[i].symbol) twin = j;
    }
    twins_.push_back(twin);
  }
}

void SymbolGuards::renew() {
  if (shapes_) program_ = shapes::GuardProgram(*shapes_);
}

std::vector<std::string> SymbolGuards::texts() const {
  std::vector<std::string> texts;
  if (!shapes_) return texts;
  for (const shapes::BackedSymbol& symbol : shapes_->backed()) {
    texts.push_back(fmt::format("{} is {}", symbol.name, fmt::join(symbol.sources, ", ")));
  }
  for (const shapes::Guard& guard : shapes_->guards()) {
    const std::string line = guard.where.describe();
    texts.push_back(guard.condition.text() + (line.empty() ? "" : " (" + line + ")"));
  }
  return texts;
}

std::int64_t SymbolGuards::value_of(std::size_t source, const LeafList& leaves) const {
  const SymbolPosition& position = positions_[twins_[source]];
  if (!position.is_used) return hints_[source];
  const Leaf& leaf = leaves[position.leaf];
  if (position.dimension < 0) return leaf.sym_int->as_int_unchecked();
  return leaf.tensor->unsafeGetTensorImpl()->sizes()[static_cast<std::size_t>(position.dimension)];
}

bool SymbolGuards::holds(const LeafList& leaves, GuardFailure* failure) const {
  if (positions_.empty()) return true;
  std::array<std::int64_t, 16> few = {};
  std::vector<std::int64_t> many(positions_.size() > few.size() ? positions_.size() : 0);
  const std::span<std::int64_t> values(many.empty() ? few.data() : many.data(), positions_.size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = value_of(i, leaves);
  const auto failed = program_.first_failure(values);
  if (!failed) return true;
  if (failure) {
    const auto failure_found = program_.describe(*failed, values);
    *failure = {"sizes", failure_found.expected, failure_found.found, failure_found.line};
  }
  return false;
}

}  // namespace rehearse::compiler
