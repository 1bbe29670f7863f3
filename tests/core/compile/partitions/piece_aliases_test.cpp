// SPDX-License-Identifier: BSD-3-Clause
// Pieces of a split whose inputs share memory. An in-place change of one input must show in the other.
#include <memory>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <rehearse/compile/compile.h>
#include <rehearse/fakes/fake_ddp.h>
#include <rehearse_internal/compile/aot_eager.h>

#include "bit_equal.h"

namespace rehearse::compiler {
namespace {

using rehearse::test::BitEqual;
using testing::ElementsAre;

using Change = at::Tensor (*)(at::Tensor product, at::Tensor alias);

// The first piece computes a product and a tensor that may be an alias of the product. The second piece gets both.
struct AliasedImpl : torch::nn::Module {
  AliasedImpl(at::Tensor (*alias)(const at::Tensor&), Change change)
      : weight1(register_parameter("weight1", at::randn({512, 512}))),
        weight2(register_parameter("weight2", at::randn({512, 512}))),
        alias_(alias),
        change_(change) {}

  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor product = at::matmul(x, weight1);
    const at::Tensor alias = alias_(product);
    const at::Tensor other = at::matmul(x, weight2);
    return other + change_(product, alias).exp();
  }

  at::Tensor weight1, weight2;

 private:
  at::Tensor (*alias_)(const at::Tensor&);
  Change change_;
};
TORCH_MODULE(Aliased);

struct Gradients {
  at::Tensor result;
  std::vector<at::Tensor> gradients;
};

template <class Forward>
Gradients run(Aliased& net, Forward&& forward) {
  at::manual_seed(3);
  Gradients got{forward(at::randn({3, 512}) / 64), {}};
  if (!got.result.requires_grad()) return got;
  got.result.sin().sum().backward();
  for (at::Tensor& parameter : net->parameters()) {
    got.gradients.push_back(parameter.grad().defined() ? parameter.grad().clone() : at::Tensor());
    parameter.mutable_grad().reset();
  }
  return got;
}

// Compares the compiled module with eager mode. Returns for each piece whether it runs under eager autograd.
std::vector<bool> eager_pieces(at::Tensor (*alias)(const at::Tensor&), Change change) {
  Aliased net(alias, change);
  fakes::FakeDDP<Aliased> ddp(net, 1);
  const auto aot = std::make_shared<AotEagerBackend>();
  auto compiled = compile(ddp, {.backend = aot, .fullgraph = true});
  for (int call = 0; call < 2; ++call) {
    const Gradients mine = run(net, compiled), eager = run(net, [&](const at::Tensor& x) { return net->forward(x); });
    EXPECT_THAT(mine.result, BitEqual(eager.result));
    EXPECT_THAT(mine.gradients, BitEqual(eager.gradients));
  }
  std::vector<bool> eagerly;
  const Explanation told = compiled.explain();
  for (const GraphExplanation& graph : told.entries.at(0).graphs) {
    eagerly.push_back(!graph.eager_because.empty());
  }
  return eagerly;
}

at::Tensor row_of(const at::Tensor& product) { return product.select(0, 1); }

TEST(PieceAliases, AViewIsChanged) {
  EXPECT_THAT(eager_pieces(
                  row_of,
                  +[](at::Tensor product, at::Tensor row) {
                    row.mul_(3);
                    return product;
                  }),
              ElementsAre(false, true));
}

TEST(PieceAliases, WhatTheViewIsOfIsChanged) {
  EXPECT_THAT(eager_pieces(
                  row_of, +[](at::Tensor product, at::Tensor row) { return product.mul_(3) + row; }),
              ElementsAre(false, true));
}

TEST(PieceAliases, NothingIsChanged) {
  EXPECT_THAT(eager_pieces(
                  row_of, +[](at::Tensor product, at::Tensor row) { return product + row; }),
              ElementsAre(false, false));
}

TEST(PieceAliases, ACopyIsChanged) {
  EXPECT_THAT(eager_pieces(
                  +[](const at::Tensor& product) { return product.clone(); },
                  +[](at::Tensor product, at::Tensor copy) { return copy.mul_(3) + product; }),
              ElementsAre(false, false));
}

// reshape() returns a view or, as here, a copy. Its schema only says that the result may be a view, so the piece runs
// under eager autograd to be safe.
TEST(PieceAliases, AReshapedCopyIsChanged) {
  EXPECT_THAT(eager_pieces(
                  +[](const at::Tensor& product) { return product.t().reshape({3, 512}); },
                  +[](at::Tensor product, at::Tensor copy) { return copy.mul_(3) + product; }),
              ElementsAre(false, true));
}

TEST(PieceAliases, WithoutGradientsTheGraphWritesToTheMemoryItself) {
  const at::NoGradGuard no_grad;
  EXPECT_THAT(eager_pieces(
                  row_of,
                  +[](at::Tensor product, at::Tensor row) {
                    row.mul_(3);
                    return product;
                  }),
              ElementsAre(false, false));
}

}  // namespace
}  // namespace rehearse::compiler
