// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <complex>
#include <concepts>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <c10/core/Device.h>
#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/ScalarType.h>

#include <rehearse/graph/sym_expr.h>

namespace rehearse::graph {

class Argument;
class Node;

// Python's `...` as an index.
struct Ellipsis {
  bool operator==(const Ellipsis&) const = default;
};

// The limit of nesting. It applies to lists, dicts and slices in a node's arguments, to lists in the metadata of a
// value, and to submodules in a module. Deeper nesting is a GraphError.
inline constexpr int kMaxNesting = 200;

// A list. It also represents fx's tuples, because no operator distinguishes the two.
using List = std::vector<Argument>;

// Named values in the order in which they were given. Names are unique.
using Dict = std::vector<std::pair<std::string, Argument>>;

// start:stop:step as an index. A bound is None, a number or a node.
class Slice {
 public:
  Slice(Argument start, Argument stop, Argument step);
  const Argument& start() const;
  const Argument& stop() const;
  const Argument& step() const;
  const List& bounds() const { return bounds_; }  // start, stop, step

 private:
  List bounds_;
};

// One argument of a node, with value semantics. A Node* refers to a node of the same graph and is not owned.
class Argument {
 public:
  using Value =
      std::variant<std::monostate, Node*, bool, std::int64_t, double, std::complex<double>, std::string, SymExpr,
                   Ellipsis, c10::ScalarType, c10::Device, c10::Layout, c10::MemoryFormat, List, Dict, Slice>;

  Argument() = default;  // Python's None
  template <std::same_as<bool> T>
  Argument(T value) : value_(value) {}
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Argument(T value) : value_(static_cast<std::int64_t>(value)) {}
  Argument(double value) : value_(value) {}
  Argument(std::complex<double> value) : value_(value) {}
  Argument(const char* text) : value_(std::string(text)) {}
  Argument(std::string text) : value_(std::move(text)) {}
  Argument(SymExpr expression) : value_(std::move(expression)) {}
  Argument(Ellipsis ellipsis) : value_(ellipsis) {}
  Argument(c10::ScalarType dtype) : value_(dtype) {}
  Argument(c10::Device device) : value_(device) {}
  Argument(c10::Layout layout) : value_(layout) {}
  Argument(c10::MemoryFormat format) : value_(format) {}
  Argument(Node* node) : value_(node) {}  // never null
  Argument(Node& node) : value_(&node) {}
  Argument(List list) : value_(std::move(list)) {}
  Argument(Dict dict) : value_(std::move(dict)) {}
  Argument(Slice slice) : value_(std::move(slice)) {}

  const Value& value() const noexcept { return value_; }

  template <class T>
  bool is() const noexcept {
    return std::holds_alternative<T>(value_);
  }
  // Throws std::bad_variant_access if it is not a T.
  template <class T>
  const T& as() const {
    return std::get<T>(value_);
  }
  // Null if it is not a T.
  template <class T>
  const T* get_if() const noexcept {
    return std::get_if<T>(&value_);
  }

  bool is_none() const noexcept { return is<std::monostate>(); }
  // The node, if this argument is one; else null. Does not look inside lists.
  Node* node() const noexcept;

  // Compares type and value. Doubles are compared by their bits, so NaN equals itself and 0.0 differs from -0.0.
  friend bool operator==(const Argument& left, const Argument& right);

 private:
  Value value_;
};

// Calls visit(const Argument&) for each value in `argument` that is not a list, dict or slice, in order.
template <class Visit>
void for_each_leaf(const Argument& argument, Visit&& visit) {
  if (const List* list = argument.get_if<List>()) {
    for (const Argument& item : *list) for_each_leaf(item, visit);
  } else if (const Dict* dict = argument.get_if<Dict>()) {
    for (const auto& [key, item] : *dict) for_each_leaf(item, visit);
  } else if (const Slice* slice = argument.get_if<Slice>()) {
    for (const Argument& item : slice->bounds()) for_each_leaf(item, visit);
  } else {
    visit(argument);
  }
}

// Calls visit(Node&) for each node in `argument`, in order, also inside lists, dicts and slices. A node that occurs
// twice is visited twice.
template <class Visit>
void for_each_node(const Argument& argument, Visit&& visit) {
  for_each_leaf(argument, [&visit](const Argument& leaf) {
    if (Node* const* node = leaf.get_if<Node*>()) visit(**node);
  });
}

// Returns a copy of `argument` with each node replaced by the Argument that map(Node&) returns.
template <class Map>
Argument map_nodes(const Argument& argument, Map&& map) {
  if (Node* const* node = argument.get_if<Node*>()) return map(**node);
  if (const List* list = argument.get_if<List>()) {
    List mapped;
    mapped.reserve(list->size());
    for (const Argument& item : *list) mapped.push_back(map_nodes(item, map));
    return mapped;
  }
  if (const Dict* dict = argument.get_if<Dict>()) {
    Dict mapped;
    mapped.reserve(dict->size());
    for (const auto& [key, item] : *dict) mapped.emplace_back(key, map_nodes(item, map));
    return mapped;
  }
  if (const Slice* slice = argument.get_if<Slice>()) {
    return Slice(map_nodes(slice->start(), map), map_nodes(slice->stop(), map), map_nodes(slice->step(), map));
  }
  return argument;
}

}  // namespace rehearse::graph
