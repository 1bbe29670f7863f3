// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <unordered_set>
#include <vector>

namespace rehearse::graph {

// A set that iterates in insertion order.
template <class T>
class OrderedSet {
 public:
  void insert(const T& item) {
    if (known_.insert(item).second) items_.push_back(item);
  }
  bool contains(const T& item) const { return known_.contains(item); }
  const std::vector<T>& items() const noexcept { return items_; }

 private:
  std::vector<T> items_;
  std::unordered_set<T> known_;
};

}  // namespace rehearse::graph
