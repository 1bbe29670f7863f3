// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "report/writers/json.h"

namespace rehearse::sim {

// A value of a dump with its path, for errors: `entries[3].state is "foo"; right would be ...`. Members throw DumpError
// if the value does not fit. A Field refers to its parent, which must outlive it.
class Field {
 public:
  explicit Field(const Json& whole) : value_(&whole) {}

  bool has(std::string_view key) const { return value_->contains(key) && !value_->at(key).is_null(); }
  // Throws if the key is missing.
  Field at(std::string_view key) const;

  std::string text() const;
  bool flag() const;
  // The value must lie between `least` and `most`.
  std::int64_t integer(std::int64_t least, std::int64_t most) const;

  // Calls visit(field) for each item of a list or tuple.
  template <std::invocable<const Field&> Visit>
  void each(const Visit& visit) const {
    const auto& all = items();
    for (std::size_t i = 0; i < all.size(); ++i) visit(Field(all[i], *this, "", i));
  }
  // Calls visit(key, field) for each entry of a dict.
  template <class Visit>
  void each_entry(const Visit& visit) const {
    for (const auto& [key, value] : entries()) visit(key, Field(value, *this, key, 0));
  }
  const std::vector<Json>& items() const;
  bool is_list() const { return value_->is_array(); }
  bool is_text() const { return value_->is_text(); }

  // Throws. `right` says what would be right: "a text".
  [[noreturn]] void wrong(std::string_view right) const;

 private:
  Field(const Json& value, const Field& parent, std::string_view key, std::size_t index)
      : value_(&value), parent_(&parent), key_(key), index_(index) {}

  const Json::Object& entries() const;
  std::string path() const;

  const Json* value_;
  const Field* parent_ = nullptr;  // null: the whole dump
  std::string_view key_;           // empty: an item of a list
  std::size_t index_ = 0;
};

}  // namespace rehearse::sim
