// SPDX-License-Identifier: BSD-3-Clause
#include "compile/guards/symbol_guards.h"

#include <array>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rehearse::compiler {

SymbolGuards::SymbolGuards(std::vector<SymbolPlace> places, std::shared_ptr<const shapes::ShapeEnv> shapes)
    : places_(std::move(places)), shapes_(std::move(shapes)), program_(*shapes_) {
  const auto& sources = shapes_->sources();
  TORCH_INTERNAL_ASSERT(places_.size() == sources.size(), "each source of a symbol has a place");
  for (std::uint32_t i = 0; i < sources.size(); ++i) {
    hints_.push_back(shapes_->backed()[sources[i].symbol].hint);
    std::uint32_t twin = i;
    for (std::uint32_t j = 0; j < sources.size() && !places_[i].is_used; ++j) {
      if (places_[j].is_used && sources[j].symbol == sources[i].symbol) twin = j;
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
  const SymbolPlace& place = places_[twins_[source]];
  if (!place.is_used) return hints_[source];
  const Leaf& leaf = leaves[place.leaf];
  if (place.dimension < 0) return leaf.sym_int->as_int_unchecked();
  return leaf.tensor->unsafeGetTensorImpl()->sizes()[static_cast<std::size_t>(place.dimension)];
}

bool SymbolGuards::holds(const LeafList& leaves, GuardFailure* failure) const {
  if (places_.empty()) return true;
  std::array<std::int64_t, 16> few = {};
  std::vector<std::int64_t> many(places_.size() > few.size() ? places_.size() : 0);
  const std::span<std::int64_t> values(many.empty() ? few.data() : many.data(), places_.size());
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
