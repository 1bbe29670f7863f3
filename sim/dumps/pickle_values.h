// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "dumps/pickle.h"

namespace rehearse::sim::pickle {

using Id = std::uint32_t;

// The values that a pickle has made so far. A container holds the ids of its items, so that an item may stand at
// several places, and a container may contain itself, as in Python. Texts are views into the pickle.
class Values {
 public:
  explicit Values(std::size_t most) : most_(most) {}

  Id none() { return add({Kind::none, 0}); }
  Id boolean(bool value) { return add({Kind::boolean, value ? 1u : 0u}); }
  Id integer(std::int64_t value) { return add({Kind::integer, static_cast<std::uint64_t>(value)}); }
  Id real(double value) { return add({Kind::real, std::bit_cast<std::uint64_t>(value)}); }
  Id text(std::string_view value) {
    texts_.push_back(value);
    return add({Kind::text, texts_.size() - 1});
  }
  Id array(std::vector<Id> items) { return container(Kind::array, std::move(items)); }
  Id dict() { return container(Kind::dict, {}); }

  bool is_array(Id id) const { return values_[id].kind == Kind::array; }
  bool is_dict(Id id) const { return values_[id].kind == Kind::dict; }
  bool is_text(Id id) const { return values_[id].kind == Kind::text; }
  // The items of an array, or the keys and values of a dict in turn.
  std::vector<Id>& items(Id id) { return items_[values_[id].payload]; }

  // Throws PickleError if the result has more values, or is deeper, than `limits` allow.
  Json json(Id root, PickleLimits limits) const;

 private:
  enum class Kind : std::uint8_t { none, boolean, integer, real, text, array, dict };
  struct Value {
    Kind kind;
    std::uint64_t payload;  // the value itself, or its index in texts_ or items_
  };

  Id add(Value value);
  Id container(Kind kind, std::vector<Id> items) {
    items_.push_back(std::move(items));
    return add({kind, items_.size() - 1});
  }
  // These take what they return from `left`.
  Json json_of(Id id, std::size_t depth, PickleLimits& left) const;
  Json few_entries(const std::vector<Id>& items, std::size_t depth, PickleLimits& left) const;
  Json many_entries(const std::vector<Id>& items, std::size_t depth, PickleLimits& left) const;
  std::string_view text_of(Id id, PickleLimits& left) const;

  const std::size_t most_;
  std::vector<Value> values_;
  std::vector<std::string_view> texts_;
  std::vector<std::vector<Id>> items_;
};

}  // namespace rehearse::sim::pickle
