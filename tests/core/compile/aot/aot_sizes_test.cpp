// SPDX-License-Identifier: BSD-3-Clause
// Pieces with symbolic sizes: products of any shape, sizes that depend on data, arithmetic on sizes.
#include <utility>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/graph/text.h>

#include "core/compile/aot/part_check.h"

namespace rehearse::compiler {
namespace {

using rehearse_test::CompiledPart;
using rehearse_test::leaf;
using rehearse_test::part;
using rehearse_test::PartInput;

at::Tensor values_of(at::IntArrayRef sizes, bool requires_grad) {
  return at::randn(sizes).requires_grad_(requires_grad);
}

// The sizes of the left and of the right operand. A first size of -1 is the batch size.
using Shapes = std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>;

std::vector<std::int64_t> with_batch(std::vector<std::int64_t> sizes, std::int64_t batch) {
  if (sizes[0] == -1) sizes[0] = batch;
  return sizes;
}

// LibTorch's matmul multiplies plain matrices if one operand folds into a matrix, and otherwise batches of matrices.
// The choice depends on requires_grad, too. If the graph chose differently, the product would have other bits.
TEST(AotEagerSizes, MatmulWithASymbolicBatchIsTakenApartAsLibTorchDoes) {
  const std::vector<Shapes> shapes = {{{-1, 4}, {4, 3}},        {{-1, 5, 4}, {4, 3}},       {{-1, 2, 5, 4}, {4, 3}},
                                      {{-1, 5, 4}, {4}},        {{4}, {-1, 4, 3}},          {{2, 4}, {-1, 4, 3}},
                                      {{-1, 5, 4}, {-1, 4, 3}}, {{-1, 2, 5, 4}, {2, 4, 3}}, {{1, 5, 4}, {-1, 4, 3}},
                                      {{-1, 5, 4}, {1, 4, 3}},  {{5, 4}, {-1, 2, 4, 3}}};
  const auto module = part("a b", "y = aten.matmul.default [%a, %b]", "[%y]");
  for (const auto& [left, right] : shapes) {
    for (const auto& [left_grad, right_grad] :
         {std::pair{true, true}, std::pair{true, false}, std::pair{false, true}}) {
      const auto inputs = [&, left_grad = left_grad, right_grad = right_grad](std::int64_t batch) {
        return std::vector<c10::IValue>{values_of(with_batch(left, batch), left_grad),
                                        values_of(with_batch(right, batch), right_grad)};
      };
      SCOPED_TRACE(testing::Message() << at::IntArrayRef(left) << " by " << at::IntArrayRef(right) << ", gradients "
                                      << left_grad << right_grad);
      const auto example = inputs(6);
      const CompiledPart product(
          module, {{.value = example[0], .batched = left[0] == -1}, {.value = example[1], .batched = right[0] == -1}});
      EXPECT_TRUE(product.shapes().guards().empty()) << product.shapes().text();
      for (const std::int64_t batch : {6, 2, 3}) product.expect_like_eager(inputs(batch));
    }
  }
}

TEST(AotEagerSizes, SizesThatDependOnData) {
  const CompiledPart rows(part("x w", R"(
    n = aten.nonzero.default [%x]
    i = aten.squeeze.dim [%n, 1]
    y = aten.index_select.default [%w, 0, %i]
    z = aten.sin.default [%y]
    s = aten.sum.dim_IntList [%z, [0]])",
                               "[%s, %z]"),
                          {{.value = at::tensor({0, 1, 1, 0, 1})}, {.value = leaf({5, 3})}});
  for (const auto& ones : {std::vector<int>{0, 1, 1, 0, 1}, {1, 1, 1, 1, 1}, {0, 1, 0, 1, 0}}) {
    rows.expect_like_eager({at::tensor(ones), leaf({5, 3})});
  }
}

TEST(AotEagerSizes, ArithmeticOnSizesBecomesNodesOfTheGraph) {
  const CompiledPart net(part("x", R"(
    c = aten.cat.default [[%x, %x]]
    f = aten.flatten.using_ints [%c]
    m = aten.mean.default [%f]
    p = aten.pad.default [%x, [1, 2]]
    y = aten.mul.Tensor [%p, %m])",
                              "[%y, %f]"),
                         {{.value = leaf({4, 3}), .batched = true}});
  for (const std::int64_t rows : {4, 2, 7}) net.expect_like_eager({leaf({rows, 3})});
}

// If the forward graph worked at any batch size, and the backward graph only at the example's size (97), gradients
// would be wrong silently.
TEST(AotEagerSizes, NoSizeOfTheBatchIsLeftInTheGraphs) {
  const CompiledPart net(part("x w b", R"(
    h = aten.linear.default [%x, %w, %b]
    r = aten.relu.default [%h]
    s = aten.sum.dim_IntList [%r, [0], true])",
                              "[%s]"),
                         {{.value = leaf({97, 3}), .batched = true}, {.value = leaf({4, 3})}, {.value = leaf({4})}});
  for (const auto& module : {net.compiled().partition.forward, net.compiled().partition.backward}) {
    EXPECT_EQ(graph::to_text(*module).find("97"), std::string::npos) << graph::to_text(*module);
  }
}

}  // namespace
}  // namespace rehearse::compiler
