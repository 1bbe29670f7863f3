// SPDX-License-Identifier: BSD-3-Clause
// Arguments are values: they compare by content, and a visitor reaches and replaces their nodes at any depth.
#include <rehearse/graph/argument.h>
#include <rehearse/graph/graph.h>

#include <limits>

#include <gtest/gtest.h>

namespace rehearse::graph {
namespace {

TEST(Argument, KindsAreKeptApart) {
  EXPECT_TRUE(Argument(true).is<bool>());
  EXPECT_TRUE(Argument(1).is<std::int64_t>());
  EXPECT_TRUE(Argument(1.0).is<double>());
  EXPECT_TRUE(Argument("x").is<std::string>());
  EXPECT_TRUE(Argument(SymExpr{"s0*2"}).is<SymExpr>());
  EXPECT_TRUE(Argument(c10::ScalarType::BFloat16).is<c10::ScalarType>());
  EXPECT_TRUE(Argument(c10::MemoryFormat::ChannelsLast).is<c10::MemoryFormat>());
  EXPECT_TRUE(Argument().is_none());
  EXPECT_NE(Argument(true), Argument(1));
  EXPECT_NE(Argument(1), Argument(1.0));
  EXPECT_NE(Argument("s0"), Argument(SymExpr{"s0"}));
  EXPECT_NE(Argument(), Argument(List{}));
}

TEST(Argument, EqualityIsByValueAndDoublesByTheirBits) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(Argument(nan), Argument(nan));
  EXPECT_EQ(Argument(nan), Argument(-nan));
  EXPECT_NE(Argument(0.0), Argument(-0.0));
  EXPECT_EQ(Argument(List{1, List{2, "a"}, {}}), Argument(List{1, List{2, "a"}, {}}));
  EXPECT_NE(Argument(List{1, 2}), Argument(List{2, 1}));
  EXPECT_EQ(Argument(Slice({}, 8, {})), Argument(Slice({}, 8, {})));
  EXPECT_NE(Argument(Slice({}, 8, {})), Argument(Slice({}, 8, 1)));
  EXPECT_EQ(Argument(Dict{{"a", 1}}), Argument(Dict{{"a", 1}}));
  EXPECT_NE(Argument(Dict{{"a", 1}}), Argument(Dict{{"b", 1}}));
  EXPECT_EQ(Argument(std::complex<double>(1, 2)), Argument(std::complex<double>(1, 2)));
}

TEST(Argument, NodesAreFoundAndReplacedAtAnyDepth) {
  Graph graph;
  Node& a = graph.placeholder("a");
  Node& b = graph.placeholder("b");
  const Argument nested = List{a, Dict{{"k", List{b, 1}}}, Slice(a, {}, b), "a"};
  std::string seen;
  for_each_node(nested, [&](Node& node) { seen += node.name(); });
  EXPECT_EQ(seen, "abab");
  const Argument mapped = map_nodes(nested, [&](Node& node) -> Argument { return &node == &a ? Argument(7) : node; });
  EXPECT_EQ(mapped, Argument(List{7, Dict{{"k", List{b, 1}}}, Slice(7, {}, b), "a"}));
}

}  // namespace
}  // namespace rehearse::graph
