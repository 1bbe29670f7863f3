// SPDX-License-Identifier: BSD-3-Clause
// Contract: the operators of a checkpoint are part of the graph of a captured function, with the results and gradients
// of eager mode.
#include <rehearse/parallel/checkpoint.h>

#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/compile/compile.h>

#include "bit_equal.h"

namespace rehearse::compiler {
namespace {

using rehearse::test::BitEqual;

at::Tensor two_layers(const at::Tensor& x, const at::Tensor& w) {
  const auto layer = [w](const at::Tensor& h) { return at::dropout(h.matmul(w).relu(), 0.3, true); };
  return checkpoint(layer, checkpoint(layer, x)).square().sum();
}

template <class Function>
std::vector<at::Tensor> trained(Function& function, std::int64_t rows) {
  at::manual_seed(3);
  const at::Tensor x = at::randn({rows, 4}).requires_grad_(), w = at::randn({4, 4}).requires_grad_();
  const at::Tensor loss = function(x, w);
  loss.backward();
  return {loss.detach(), x.grad(), w.grad()};
}

TEST(CompiledCheckpoint, IsPartOfTheGraph) {
  for (const char* const backend : {"eager", "aot_eager"}) {
    auto compiled = compile(two_layers, {.backend = backend, .fullgraph = true});
    for (const std::int64_t rows : {3, 3, 5, 7}) {
      const auto found = trained(compiled, rows), expected = trained(two_layers, rows);
      EXPECT_THAT(found, BitEqual(expected)) << backend << rows;
    }
    EXPECT_EQ(compiled.stats().eager_calls, 0);
    EXPECT_EQ(compiled.stats().compiles, 2);
  }
}

}  // namespace
}  // namespace rehearse::compiler
