// SPDX-License-Identifier: BSD-3-Clause
// Seeds of TestFakeDistributedSingleProc in which symbols, strides or random numbers cross a cut. Each is compared with
// eager, bit for bit, outputs and gradients.
#include <functional>
#include <memory>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <rehearse/compile/compile.h>
#include <rehearse/compile/mark_dynamic.h>
#include <rehearse/fakes/fake_ddp.h>
#include <rehearse_internal/compile/aot_eager.h>

#include "models/attention.h"
#include "models/symbols.h"

namespace rehearse::compiler {
namespace {

using fakes::FakeDDP;

std::vector<at::Tensor> gradients_of(torch::nn::Module& module, const at::Tensor& result) {
  result.sum().backward();
  std::vector<at::Tensor> gradients;
  for (auto& parameter : module.parameters()) {
    gradients.push_back(parameter.grad().defined() ? parameter.grad().clone() : at::Tensor());
    parameter.mutable_grad().reset();
  }
  return gradients;
}

// Runs both from the same seed and compares outputs and gradients.
void expect_equal(torch::nn::Module& module, const std::function<at::Tensor()>& compiled,
                  const std::function<at::Tensor()>& eager) {
  at::manual_seed(1337);
  const at::Tensor expected = eager();
  const auto wanted = gradients_of(module, expected);
  at::manual_seed(1337);
  const at::Tensor found = compiled();
  const auto gradients = gradients_of(module, found);
  EXPECT_TRUE(found.equal(expected));
  EXPECT_EQ(found.strides(), expected.strides());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    ASSERT_EQ(gradients[i].defined(), wanted[i].defined()) << i;
    if (wanted[i].defined()) {
      EXPECT_TRUE(gradients[i].equal(wanted[i])) << i;
    }
  }
}

// x and y of two sizes, and other data: one compilation, in so many pieces.
template <class Net>
void expect_unbacked(Net net, std::int64_t pieces, const std::vector<at::Tensor>& data) {
  FakeDDP<Net> ddp(net, 1);
  const auto backend = std::make_shared<AotEagerBackend>();
  auto compiled = compile(ddp, {.backend = backend, .dynamic = true, .fullgraph = true});
  std::int64_t batch = 20;
  for (const at::Tensor& y : data) {
    const at::Tensor x = at::randn({batch++, 512});
    expect_equal(*net, [&] { return compiled(x, y); }, [&] { return net->forward(x, y); });
  }
  EXPECT_EQ(compiled.stats().compiles, 1);
  EXPECT_EQ(compiled.stats().graphs, pieces);
  for (const auto& graph : backend->graphs()) EXPECT_EQ(graph->eager_because, "") << graph->name;
}

at::Tensor numbers(std::vector<std::int64_t> values) { return at::tensor(values); }

TEST(TestFakeDistributedSingleProc, test_unbacked_symbol_splitting_direct) {
  expect_unbacked(test::DirectSplitting(), 2, {numbers({12, 13}), numbers({3, 1})});
}
TEST(TestFakeDistributedSingleProc, test_unbacked_symbol_splitting_indirect) {
  expect_unbacked(test::IndirectSplitting(), 2, {numbers({12, 13}), numbers({0, 1})});
}
TEST(TestFakeDistributedSingleProc, test_unbacked_symbol_splitting_torture_multi) {
  expect_unbacked(test::TortureSplitting(), 3, {numbers({12, 13}), numbers({1, 1})});
}
TEST(TestFakeDistributedSingleProc, test_unbacked_symbol_splitting_no_binding) {
  expect_unbacked(test::NonzeroSplitting(), 2, {numbers({0, 12, 0, 11}), numbers({0, 0, 5, 0})});
}

// Strides that cross the cut stay symbolic: the second length is no second compilation.
TEST(TestFakeDistributedSingleProc, test_ddp_optimizer_inductor_strides_dont_specialize) {
  test::TwoLinears net;
  FakeDDP<test::TwoLinears> ddp(net, 1);
  auto compiled = compile(ddp, {.backend = "aot_eager", .fullgraph = true});
  EXPECT_EQ(compiled.stats().compiles, 0);
  for (const std::int64_t length : {18, 20}) {
    const at::Tensor x = at::randn({16, length, 768});
    mark_dynamic(x, 1);
    expect_equal(*net, [&] { return compiled(x); }, [&] { return net->forward(x); });
    EXPECT_EQ(compiled.stats().compiles, 1);
  }
  EXPECT_EQ(compiled.stats().graphs, 2);
}

TEST(TestFakeDistributedSingleProc, test_call_method_forward) {
  test::NormedAttention net;
  FakeDDP<test::NormedAttention> ddp(net);
  auto compiled = compile(ddp, {.backend = "aot_eager", .fullgraph = true});
  const at::Tensor x = at::randn({2, 129, 100, 96});
  const at::NoGradGuard no_grad;  // as the seed, which only runs it
  EXPECT_TRUE(compiled(x).equal(net->forward(x)));
  EXPECT_EQ(compiled.stats().compiles, 1);
}

}  // namespace
}  // namespace rehearse::compiler
