// SPDX-License-Identifier: BSD-3-Clause
// Contiguity of symbolic sizes and strides must agree with c10's answer for the numbers.
#include <cstdint>
#include <vector>

#include <ATen/ATen.h>
#include <c10/core/TensorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <rehearse_internal/shapes/shape_env.h>
#include <rehearse_internal/shapes/sym_node.h>

namespace rehearse::shapes {
namespace {

using c10::SymInt;
using c10::SymNode;
using testing::IsEmpty;

std::vector<SymNode> nodes_of(const SymNode& base, const std::vector<SymInt>& values) {
  std::vector<SymNode> nodes;
  for (const SymInt& value : values) nodes.push_back(value.wrap_node(base));
  return nodes;
}

struct Predicates {
  std::vector<bool> answers;
  bool operator==(const Predicates&) const = default;
};

Predicates of_numbers(const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& strides) {
  const at::Tensor tensor = at::empty_strided(sizes, strides);
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  return {{tensor.is_contiguous(), tensor.is_contiguous(at::MemoryFormat::ChannelsLast),
           tensor.is_contiguous(at::MemoryFormat::ChannelsLast3d), impl.is_strides_like_channels_last(),
           impl.is_strides_like_channels_last_3d(), tensor.is_non_overlapping_and_dense()}};
}

Predicates of_symbols(const std::vector<SymInt>& sizes, const std::vector<SymInt>& strides, const SymNode& base) {
  const std::vector<SymNode> of_sizes = nodes_of(base, sizes);
  const std::vector<SymNode> of_strides = nodes_of(base, strides);
  const auto answer = [](const SymNode& node) { return node->guard_bool("layout_test", 0); };
  const bool contiguous = answer(base->is_contiguous(of_sizes, of_strides));
  // A tensor asks these questions in this order.
  return {{contiguous, answer(base->is_channels_last_contiguous_2d(of_sizes, of_strides)),
           answer(base->is_channels_last_contiguous_3d(of_sizes, of_strides)),
           answer(base->is_channels_last_strides_2d(of_sizes, of_strides)),
           answer(base->is_channels_last_strides_3d(of_sizes, of_strides)),
           contiguous || answer(base->is_non_overlapping_and_dense(of_sizes, of_strides))}};
}

// Strides of a dense layout with the dimensions in a random order. In one of three cases, the last stride is random.
std::vector<std::int64_t> any_strides(const std::vector<std::int64_t>& sizes) {
  std::vector<std::size_t> order(sizes.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[*rc::gen::inRange<std::size_t>(0, i)]);
  std::vector<std::int64_t> strides(sizes.size());
  std::int64_t next = 1;
  for (const std::size_t dim : order) {
    strides[dim] = next;
    next *= std::max<std::int64_t>(sizes[dim], 1);
  }
  if (!strides.empty() && *rc::gen::inRange(0, 3) == 0) strides.back() = *rc::gen::inRange<std::int64_t>(0, 5);
  return strides;
}

TEST(Layout, AnswersAsC10OfTheNumbers) {
  EXPECT_TRUE(rc::check("layout", [] {
    const auto env = ShapeEnv::make({.duck_shaping = false});
    const SymNode base = env->add_backed(7, "base").toSymNode();
    std::vector<std::int64_t> sizes(*rc::gen::inRange<std::size_t>(0, 6));
    for (std::int64_t& size : sizes) size = *rc::gen::inRange<std::int64_t>(0, 5);
    const std::vector<std::int64_t> strides = any_strides(sizes);
    std::vector<SymInt> sym_sizes;
    std::vector<SymInt> sym_strides;
    for (const std::int64_t size : sizes) sym_sizes.push_back(env->add_backed(size, "size"));
    for (const std::int64_t stride : strides) sym_strides.push_back(env->add_backed_int(stride, "stride"));
    RC_ASSERT(of_symbols(sym_sizes, sym_strides, base) == of_numbers(sizes, strides));
  }));
}

TEST(Layout, OfStridesMadeOfSizesNeedsNoGuard) {
  const auto env = ShapeEnv::make();
  const SymInt n = env->add_backed(8, "x.size(0)");
  const SymInt c = env->add_backed(3, "x.size(1)");
  const SymNode base = n.toSymNode();
  const std::vector<bool> row_major = {true, false, false, false, false, true};
  EXPECT_EQ(of_symbols({n, c, 5, 6}, {c * 30, 30, 6, 1}, base).answers, row_major);
  const std::vector<bool> channels_last = {false, true, false, true, false, true};
  EXPECT_EQ(of_symbols({n, c, 5, 6}, {c * 30, 1, c * 6, c}, base).answers, channels_last);
  const std::vector<bool> transposed = {false, false, false, false, false, true};
  EXPECT_EQ(of_symbols({c, n}, {1, c}, base).answers, transposed);
  const std::vector<bool> expanded = {false, false, false, false, false, false};
  EXPECT_EQ(of_symbols({n, c}, {0, 1}, base).answers, expanded);
  EXPECT_THAT(env->guards(), IsEmpty());
}

TEST(Layout, OfUnbackedSizesIsKnownWhereStridesFollowThem) {
  const auto env = ShapeEnv::make();
  const SymInt u = env->add_unbacked();
  const SymNode base = u.toSymNode();
  const std::vector<SymNode> sizes = nodes_of(base, {u, 4});
  EXPECT_TRUE(base->is_contiguous(sizes, nodes_of(base, {4, 1}))->constant_bool().value());
  EXPECT_TRUE(base->is_non_overlapping_and_dense(sizes, nodes_of(base, {4, 1}))->constant_bool().value());
  EXPECT_EQ(base->is_contiguous(sizes, nodes_of(base, {1, u}))->constant_bool(), std::nullopt);
  EXPECT_THAT(env->asserts(), IsEmpty());
}

}  // namespace
}  // namespace rehearse::shapes
