// SPDX-License-Identifier: BSD-3-Clause
// Seed tests of TestFakeDistributedSingleProc. In all of them but test_call_method_forward, symbols or symbolic strides
// cross a cut. Outputs and gradients must equal those of eager mode, bit for bit.
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/compile/compile.h>
#include <rehearse/compile/mark_dynamic.h>
#include <rehearse/fakes/fake_ddp.h>
#include <rehearse_internal/compile/aot_eager.h>

#include "bit_equal.h"
#include "core/compile/seeds/seed_test.h"
#include "models/attention.h"
#include "models/symbols.h"

namespace rehearse::compiler {
namespace {

using fakes::FakeDDP;
using rehearse::test::BitEqual;

std::vector<at::Tensor> gradients_of(torch::nn::Module& module, const at::Tensor& result) {
  result.sum().backward();
  std::vector<at::Tensor> gradients;
  for (auto& parameter : module.parameters()) {
    gradients.push_back(parameter.grad().defined() ? parameter.grad().clone() : at::Tensor());
    parameter.mutable_grad().reset();
  }
  return gradients;
}

void expect_equal(torch::nn::Module& module, const std::function<at::Tensor()>& compiled,
                  const std::function<at::Tensor()>& eager) {
  at::manual_seed(1337);
  const at::Tensor expected = eager();
  const auto wanted = gradients_of(module, expected);
  at::manual_seed(1337);
  const at::Tensor found = compiled();
  const auto gradients = gradients_of(module, found);
  EXPECT_THAT(found, BitEqual(expected));
  EXPECT_EQ(found.strides(), expected.strides());
  EXPECT_THAT(gradients, BitEqual(wanted));
}

// Compiles the net, and calls it once for each tensor in `data`, each time with another batch size. Returns the
// statistics, and the number of compilations in each call. No graph may run under eager autograd.
template <class Net>
std::pair<CompileStats, Counts> run_unbacked(Net net, double bucket_cap_mb, const std::vector<at::Tensor>& data) {
  FakeDDP<Net> ddp(net, bucket_cap_mb);
  const auto backend = std::make_shared<AotEagerBackend>();
  auto compiled = compile(ddp, {.backend = backend, .dynamic = true, .fullgraph = true});
  std::int64_t batch = 20;
  Counts compiles;
  for (const at::Tensor& y : data) {
    const at::Tensor x = at::randn({batch++, 512});
    expect_equal(*net, [&] { return compiled(x, y); }, [&] { return net->forward(x, y); });
    compiles.push_back(static_cast<int>(compiled.stats().compiles_in_last_call));
  }
  for (const auto& graph : backend->graphs()) EXPECT_EQ(graph->eager_because, "") << graph->name;
  return {compiled.stats(), compiles};
}

at::Tensor numbers(std::vector<std::int64_t> values) { return at::tensor(values); }

TEST_F(TestFakeDistributedSingleProc, test_unbacked_symbol_splitting_direct) {
  const auto [stats, compiles] = run_unbacked(test::DirectSplitting(), cap_mb(), {numbers({12, 13}), numbers({3, 1})});
  expect_listed(stats, compiles);
}
TEST_F(TestFakeDistributedSingleProc, test_unbacked_symbol_splitting_indirect) {
  const auto [stats, compiles] =
      run_unbacked(test::IndirectSplitting(), cap_mb(), {numbers({12, 13}), numbers({0, 1})});
  expect_listed(stats, compiles);
}
TEST_F(TestFakeDistributedSingleProc, test_unbacked_symbol_splitting_torture_multi) {
  const auto [stats, compiles] = run_unbacked(test::TortureSplitting(), cap_mb(), {numbers({12, 13}), numbers({1, 1})});
  expect_listed(stats, compiles);
}
TEST_F(TestFakeDistributedSingleProc, test_unbacked_symbol_splitting_no_binding) {
  const auto [stats, compiles] =
      run_unbacked(test::NonzeroSplitting(), cap_mb(), {numbers({0, 12, 0, 11}), numbers({0, 0, 5, 0})});
  expect_listed(stats, compiles);
}

// Strides that cross the cut stay symbolic, so the second length needs no compilation.
TEST_F(TestFakeDistributedSingleProc, test_ddp_optimizer_inductor_strides_dont_specialize) {
  test::TwoLinears net;
  FakeDDP<test::TwoLinears> ddp(net, cap_mb());
  auto compiled = compile(ddp, {.backend = "aot_eager", .fullgraph = true});
  EXPECT_EQ(compiled.stats().compiles, 0);
  Counts compiles;
  for (const std::int64_t length : {18, 20}) {
    const at::Tensor x = at::randn({16, length, 768});
    mark_dynamic(x, 1);
    expect_equal(*net, [&] { return compiled(x); }, [&] { return net->forward(x); });
    compiles.push_back(static_cast<int>(compiled.stats().compiles_in_last_call));
  }
  expect_listed(compiled.stats(), compiles);
}

// Parameters require gradients, so there is a joint graph, as in the seed test. Its backward runs, too.
TEST_F(TestFakeDistributedSingleProc, test_call_method_forward) {
  test::NormedAttention net;
  FakeDDP<test::NormedAttention> ddp(net, cap_mb());
  const auto backend = std::make_shared<AotEagerBackend>();
  auto compiled = compile(ddp, {.backend = backend, .fullgraph = true});
  const at::Tensor x = at::randn({2, 129, 100, 96});
  expect_equal(*net, [&] { return compiled(x); }, [&] { return net->forward(x); });
  for (const auto& graph : backend->graphs()) EXPECT_EQ(graph->eager_because, "") << graph->name;
  expect_listed(compiled.stats(), {static_cast<int>(compiled.stats().compiles_in_last_call)});
}

}  // namespace
}  // namespace rehearse::compiler
