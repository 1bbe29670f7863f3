// SPDX-License-Identifier: BSD-3-Clause
#include "compile/arguments/dynamism.h"

namespace rehearse::compiler {

void Dynamism::Number::absorb(std::int64_t seen) noexcept {
  if (state == State::Unseen) {
    state = State::One;
    value = seen;
  } else if (value != seen) {
    state = State::Dynamic;
  }
}

void Dynamism::absorb_tensor(const std::string& source, at::IntArrayRef sizes) {
  Source& known = sources_[source];
  known.was_tensor = true;
  if (!known.sizes) known.sizes.emplace(sizes.size());
  if (known.sizes->size() != sizes.size()) {
    known.dimensions_differ = true;
    return;
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) (*known.sizes)[i].absorb(sizes[i]);
}

void Dynamism::absorb_int(const std::string& source, std::int64_t value) {
  Source& known = sources_[source];
  known.was_int = true;
  known.scalar.absorb(value);
}

void Dynamism::mark_dynamic(const std::string& source, std::size_t dimension, std::size_t dimensions) {
  Source& known = sources_[source];
  if (!known.sizes || known.sizes->size() != dimensions) known.sizes.emplace(dimensions);
  (*known.sizes)[dimension].marked_dynamic = true;
}

void Dynamism::mark_static(const std::string& source, std::size_t dimension) {
  Source& known = sources_[source];
  if (!known.sizes || known.sizes->size() <= dimension) known.sizes.emplace(dimension + 1);
  (*known.sizes)[dimension].marked_static = true;
}

bool Dynamism::is_dynamic_size(const std::string& source, std::size_t dimension) const {
  const auto found = sources_.find(source);
  if (found == sources_.end()) return all_.value_or(false);
  const Source& known = found->second;
  const bool has_size = known.sizes && dimension < known.sizes->size();
  const Number size = has_size ? (*known.sizes)[dimension] : Number{};
  if (size.marked_dynamic) return true;
  if (size.marked_static) return false;
  if (all_) return *all_;
  return known.was_int || known.dimensions_differ || size.state == State::Dynamic;
}

bool Dynamism::is_dynamic_int(const std::string& source) const {
  if (all_) return *all_;
  const auto found = sources_.find(source);
  return found != sources_.end() && (found->second.was_tensor || found->second.scalar.state == State::Dynamic);
}

}  // namespace rehearse::compiler
