// SPDX-License-Identifier: BSD-3-Clause
// Makes the conditions under which sizes and strides form a dense layout in some order. The definitions are those of
// c10/core/Contiguity.h and c10/core/MemoryFormat.h.
#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "shapes/env/shape_node.h"

namespace rehearse::shapes {
namespace {

using c10::SymNode;
using Nodes = c10::ArrayRef<SymNode>;
using Order = std::vector<std::size_t>;

const Order kChannelsLast2d = {1, 3, 2, 0};
const Order kChannelsLast3d = {1, 4, 3, 2, 0};

std::vector<Expr> exprs(const ShapeNode& node, Nodes nodes) {
  std::vector<Expr> result;
  for (const SymNode& each : nodes) result.push_back(node.expr_in(each));
  return result;
}

struct Layout {
  const ShapeEnv& env;
  std::vector<Expr> sizes;
  std::vector<Expr> strides;

  Layout(const ShapeNode& node, Nodes of_sizes, Nodes of_strides)
      : env(*node.env()), sizes(exprs(node, of_sizes)), strides(exprs(node, of_strides)) {}

  // Replaces the condition by a constant if its value is known.
  Condition known(const Condition& condition) const {
    const auto decided = env.decide(condition);
    return decided ? Condition(*decided) : condition;
  }

  Condition is_empty() const {
    Condition empty = false;
    for (const Expr& size : sizes) empty = empty | known(Condition::eq(size, 0));
    return empty;
  }

  // True for a dense layout with the dimensions in this order, innermost first. Dimensions of size 1 may have any
  // stride.
  Condition dense_in(const Order& order) const {
    if (order.size() != sizes.size()) return false;
    Condition dense = true;
    Expr expected = 1;
    for (const std::size_t dim : order) {
      dense = dense & (known(Condition::eq(sizes[dim], 1)) | known(Condition::eq(strides[dim], expected)));
      expected = expected * sizes[dim];
    }
    return known(dense);
  }

  // Like dense_in(), but a dimension of size 0 or 1 may have any stride, and does not affect the strides of the others.
  Condition non_overlapping_in(const Order& order) const {
    Condition dense = true;
    Expr expected = 1;
    for (const std::size_t dim : order) {
      dense = dense & (known(Condition::le(sizes[dim], 1)) | known(Condition::eq(strides[dim], expected)));
      expected = expected * at_least_one(sizes[dim]);
    }
    return known(dense);
  }

  Expr at_least_one(const Expr& size) const { return env.decide(Condition::ge(size, 1)) == true ? size : max(size, 1); }

  // True if the strides have the order of channels last. Gaps are allowed.
  Condition strides_in(const Order& order) const {
    if (order.size() != sizes.size()) return false;
    Expr least = 0;
    Condition grows = known(Condition::ne(strides[1], 0));
    for (const std::size_t dim : order) {
      grows = grows & known(Condition::ne(sizes[dim], 0)) & known(Condition::ge(strides[dim], least));
      // A tensor of sizes [N, 1, 1, 1] fits both channels last and channels first. It counts as channels first.
      if (dim == 0) grows = grows & known(Condition::ne(least, strides[1]));
      least = strides[dim] * at_least_one(sizes[dim]);
    }
    return known(grows);
  }
};

// Dimensions by increasing stride, without those whose size is known to be at most 1. If the order of two strides
// depends on symbols, adds a guard. If it depends on unbacked symbols, returns nothing.
std::optional<Order> order_by_stride(ShapeEnv& env, const Layout& layout) {
  const std::string reason = "the order of strides";
  Order order;
  for (std::size_t dim = 0; dim < layout.sizes.size(); ++dim) {
    if (env.decide(Condition::le(layout.sizes[dim], 1)) == true) continue;
    // Insertion sort, because there are few dimensions and this sort asks each question once.
    auto at = order.end();
    while (at != order.begin()) {
      const std::size_t before = *(at - 1);
      const Condition in_order = Condition::le(layout.strides[before], layout.strides[dim]);
      if (!env.decide(in_order) && !env.hint(in_order)) return std::nullopt;
      if (env.guard(in_order, reason)) break;
      --at;
    }
    order.insert(at, dim);
  }
  return order;
}

Order row_major(std::size_t dims) {
  Order order(dims);
  std::iota(order.rbegin(), order.rend(), 0);
  return order;
}

}  // namespace

SymNode ShapeNode::is_contiguous(Nodes sizes, Nodes strides) {
  const Layout layout(*this, sizes, strides);
  return make(layout.known(layout.dense_in(row_major(sizes.size())) | layout.is_empty()));
}

SymNode ShapeNode::is_channels_last_contiguous_2d(Nodes sizes, Nodes strides) {
  return make(Layout(*this, sizes, strides).dense_in(kChannelsLast2d));
}

SymNode ShapeNode::is_channels_last_contiguous_3d(Nodes sizes, Nodes strides) {
  return make(Layout(*this, sizes, strides).dense_in(kChannelsLast3d));
}

SymNode ShapeNode::is_channels_last_strides_2d(Nodes sizes, Nodes strides) {
  return make(Layout(*this, sizes, strides).strides_in(kChannelsLast2d));
}

SymNode ShapeNode::is_channels_last_strides_3d(Nodes sizes, Nodes strides) {
  return make(Layout(*this, sizes, strides).strides_in(kChannelsLast3d));
}

SymNode ShapeNode::is_non_overlapping_and_dense(Nodes sizes, Nodes strides) {
  const Layout layout(*this, sizes, strides);
  const Condition contiguous = layout.non_overlapping_in(row_major(sizes.size()));
  if (contiguous.is_true()) return make(contiguous);
  if (const auto order = order_by_stride(*env_, layout)) return make(layout.non_overlapping_in(*order));
  return make(contiguous | layout.dense_in(kChannelsLast2d) | layout.dense_in(kChannelsLast3d));
}

}  // namespace rehearse::shapes
