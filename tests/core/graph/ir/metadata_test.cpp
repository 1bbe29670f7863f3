// SPDX-License-Identifier: BSD-3-Clause
// Metadata: which symbols a value has, and where a node comes from.
#include <rehearse/graph/metadata.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rehearse::graph {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(FreeSymbols, OfAValueAreThoseOfSizesStridesAndOffset) {
  const TensorMeta tensor{
      .sizes = {SymExpr{"s1"}, 4}, .strides = {SymExpr{"s0*4"}, 1}, .storage_offset = SymExpr{"u0"}};
  EXPECT_THAT(free_symbols(ValueMeta(tensor)), ElementsAre("s0", "s1", "u0"));
  const SymScalarMeta scalar{SymScalarMeta::Kind::Bool, {"u7 >= 0"}};
  EXPECT_THAT(free_symbols(ValueMeta(scalar)), ElementsAre("u7"));
  EXPECT_THAT(free_symbols(ValueMeta(ValueMeta::List{tensor, scalar, {}})), ElementsAre("s0", "s1", "u0", "u7"));
  EXPECT_THAT(free_symbols(ValueMeta()), IsEmpty());
}

TEST(Origin, NamesTheInnermostLine) {
  const Origin origin{.stack_trace =
                          "File \"a.py\", line 5, in forward\n    return self.m(x)\n"
                          "  File \"lib/b.py\", line 653, in forward\n    y = x + 1",
                      .nn_module_stack = "L__self__,,main.W;L__self__m,m.0,lib.Bert",
                      .torch_fn = ""};
  EXPECT_EQ(origin.source_line(), "lib/b.py:653");
  EXPECT_EQ(Origin().source_line(), "");
  EXPECT_EQ((Origin{"File \"cut", "key", ""}).source_line(), "");
}

TEST(Metadata, NamesTheLineOfItsOrigin) {
  Metadata metadata;
  EXPECT_EQ(metadata.source_line(), "");
  EXPECT_EQ(source_line(nullptr), "");
  metadata.set_origin({.stack_trace = "File \"a.py\", line 5, in forward", .nn_module_stack = "", .torch_fn = ""});
  EXPECT_EQ(metadata.source_line(), "a.py:5");
  EXPECT_EQ(source_line(metadata.origin), "a.py:5");
}

TEST(Metadata, ComparesByValue) {
  Metadata left;
  Metadata right;
  EXPECT_EQ(left, right);
  left.set_value(TensorMeta{.sizes = {1}});
  EXPECT_FALSE(left == right);
  right.set_value(TensorMeta{.sizes = {1}});
  EXPECT_EQ(left, right);
  right.set_value(TensorMeta{.sizes = {SymExpr{"s0"}}});
  EXPECT_FALSE(left == right);
  right.set_value(TensorMeta{.sizes = {SymExpr{"1"}}});
  EXPECT_EQ(left, right) << "a number as text is the number";
  EXPECT_EQ(left.tensor()->sizes.size(), 1u);
  EXPECT_EQ(Metadata().tensor(), nullptr);
}

}  // namespace
}  // namespace rehearse::graph
