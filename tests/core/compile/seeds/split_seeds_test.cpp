// SPDX-License-Identifier: BSD-3-Clause
// Tests of PyTorch's test_dynamo_distributed.py, of the same names: how DDPOptimizer splits. Set-up and numbers are
// those that SEEDS.md lists.
#include <memory>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/compile/compile.h>
#include <rehearse/compile/counting_backend.h>
#include <rehearse/fakes/fake_ddp.h>

#include "models/custom.h"
#include "models/symbols.h"
#include "models/toy.h"

namespace rehearse::compiler {
namespace {

using fakes::FakeDDP;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// Graphs that the back end got in one call of FakeDDP(net), whose output equals eager's.
template <class Net, class... Inputs>
std::size_t graphs_of(Net net, double bucket_cap_mb, const Inputs&... inputs) {
  const auto counting = std::make_shared<CountingBackend>();
  FakeDDP<Net> ddp(net, bucket_cap_mb);
  auto compiled = compile(ddp, {.backend = counting});
  EXPECT_TRUE(compiled(inputs...).equal(net->forward(inputs...)));
  EXPECT_EQ(compiled.stats().compiles, 1);
  EXPECT_EQ(compiled.stats().graphs, static_cast<std::int64_t>(counting->graphs()));
  return counting->graphs();
}

// 25 MB: three graphs, and as many reasons that name DDPOptimizer.
TEST(TestSingleProc, test_graph_split) {
  test::Toy net;
  const auto counting = std::make_shared<CountingBackend>();
  FakeDDP<test::Toy> ddp(net, 25);
  auto compiled = compile(ddp, {.backend = counting});
  const at::Tensor x = at::randn({20, 10});
  EXPECT_TRUE(compiled(x).equal(net->forward(x)));
  EXPECT_EQ(counting->graphs(), 3U);
  EXPECT_THAT(compiled.explain().break_reasons(), SizeIs(3));
  EXPECT_THAT(compiled.explain().break_reasons(), Each(HasSubstr("DDPOptimizer")));
}

// A small net and a large bucket: one graph.
TEST(TestSingleProc, test_no_split) {
  EXPECT_EQ(graphs_of(test::Toy(test::ToyShape{.hidden = 5}), 250, at::randn({20, 10})), 1U);
}

// A layer with operators of its own: its parameter is counted like others.
TEST(TestSingleProc, test_custom_layer) {
  const at::Tensor x = at::randn({512, 512});
  EXPECT_EQ(graphs_of(test::Custom(), 1, x, x), 3U);
}

TEST(TestSingleProc, test_aot_autograd) {
  test::Toy net(test::ToyShape{.hidden = 1000});
  FakeDDP<test::Toy> ddp(net, 1);
  auto compiled = compile(ddp, {.backend = "aot_eager"});
  const at::Tensor x = at::randn({20, 10});
  const at::Tensor expected = net->forward(x);
  expected.sum().backward();
  std::vector<at::Tensor> gradients;
  for (auto& parameter : net->parameters()) {
    gradients.push_back(parameter.grad().clone());
    parameter.mutable_grad().reset();
  }
  const at::Tensor found = compiled(x);
  EXPECT_TRUE(found.equal(expected));
  EXPECT_EQ(compiled.stats().graphs, 3);
  found.sum().backward();
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    EXPECT_TRUE(net->parameters()[i].grad().equal(gradients[i])) << i;
  }
}

// Neither parameters nor inputs.
TEST(TestFakeDistributedSingleProc, test_issue90375) {
  test::RandomProduct net;
  FakeDDP<test::RandomProduct> ddp(net);
  auto compiled = compile(ddp, {.backend = "aot_eager"});
  EXPECT_EQ(compiled().sizes(), at::IntArrayRef({3}));
  EXPECT_EQ(compiled.stats().graphs, 1);
}

// A symbolic batch, s0 and 2*s0, crosses the cut between two products.
TEST(TestFakeDistributedSingleProc, test_symbol_splitting) {
  test::SymbolSplitting net;
  FakeDDP<test::SymbolSplitting> ddp(net, 1);
  auto compiled = compile(ddp, {.backend = "aot_eager", .dynamic = true});
  for (const std::int64_t batch : {20, 24, 7}) {
    const at::Tensor x = at::randn({batch, 512});
    EXPECT_TRUE(compiled(x).equal(net->forward(x)));
  }
  EXPECT_EQ(compiled.stats().compiles, 1);
  EXPECT_EQ(compiled.stats().graphs, 2);
}

}  // namespace
}  // namespace rehearse::compiler
