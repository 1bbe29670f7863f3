// SPDX-License-Identifier: BSD-3-Clause
// Ports of the tests with the same names in PyTorch's test_dynamo_distributed.py. They test how DDPOptimizer splits.
// docs/SEEDS.md lists bucket sizes, pieces and compilations.
#include <memory>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <rehearse/compile/compile.h>
#include <rehearse/compile/counting_backend.h>
#include <rehearse/fakes/fake_ddp.h>
#include <rehearse/parallel/bucket_splitter.h>
#include <rehearse/parallel/distributed_data_parallel.h>

#include "bit_equal.h"
#include "core/compile/seeds/seed_test.h"
#include "models/custom.h"
#include "models/symbols.h"
#include "models/toy.h"

namespace rehearse::compiler {
namespace {

using fakes::FakeDDP;
using rehearse::test::BitEqual;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Calls the compiled data-parallel module `ddp` once. The output must equal that of the wrapped module, and the back
// end must get as many graphs as the statistics count.
template <class Ddp, class... Inputs>
CompileStats split_once(Ddp& ddp, const Inputs&... inputs) {
  const auto counting = std::make_shared<CountingBackend>();
  auto compiled = compile(ddp, {.backend = counting});
  EXPECT_THAT(compiled(inputs...), BitEqual(ddp.module().forward(inputs...)));
  EXPECT_EQ(compiled.stats().graphs, static_cast<std::int64_t>(counting->graphs()));
  return compiled.stats();
}

TEST_F(TestSingleProcUnderFakeDdp, test_graph_split) {
  test::Toy net;
  FakeDDP<test::Toy> ddp(net, cap_mb());
  auto compiled = compile(ddp, {.backend = "counting"});
  const at::Tensor x = at::randn({20, 10});
  EXPECT_THAT(compiled(x), BitEqual(net->forward(x)));
  EXPECT_THAT(compiled.explain().break_reasons(), SizeIs(3));
  EXPECT_THAT(compiled.explain().break_reasons(), Each(HasSubstr("DDPOptimizer")));
  const auto told = compiled.explain();
  std::vector<std::int64_t> bytes;
  for (const GraphExplanation& graph : told.entries.at(0).graphs) bytes.push_back(graph.bucket_bytes);
  EXPECT_EQ(bytes, (std::vector<std::int64_t>{220'000, 100'020'000, 100'120'020}));
  expect_listed(told.stats, {1});
}

TEST_F(TestSingleProcUnderFakeDdp, test_no_split) {
  FakeDDP ddp(test::Toy(test::ToyShape{.hidden = 5}), cap_mb());
  expect_listed(split_once(ddp, at::randn({20, 10})), {1});
}
TEST_F(TestSingleProc, test_no_split) {
  on_ranks([this](RankContext& ctx) {
    const test::Toy net(test::ToyShape{.hidden = 5});
    DistributedDataParallel ddp(net, ctx.group(), {.bucket_cap_mb = cap_mb()});
    expect_listed(split_once(ddp, at::randn({20, 10})), {1}, ctx.rank());
  });
}

// The net has a layer of a custom class. The layer's parameters count like those of other layers.
TEST_F(TestSingleProcUnderFakeDdp, test_custom_layer) {
  FakeDDP ddp(test::Custom(), cap_mb());
  const at::Tensor x = at::randn({512, 512});
  expect_listed(split_once(ddp, x, x), {1});
}
TEST_F(TestSingleProc, test_custom_layer) {
  on_ranks([this](RankContext& ctx) {
    DistributedDataParallel ddp(test::Custom(), ctx.group(), {.bucket_cap_mb = cap_mb()});
    const at::Tensor x = at::randn({512, 512});
    expect_listed(split_once(ddp, x, x), {1}, ctx.rank());
  });
}

TEST_F(TestSingleProcUnderFakeDdp, test_aot_autograd) {
  test::Toy net;
  FakeDDP<test::Toy> ddp(net, cap_mb());
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
  EXPECT_THAT(found, BitEqual(expected));
  found.sum().backward();
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    EXPECT_THAT(net->parameters()[i].grad(), BitEqual(gradients[i])) << i;
  }
  expect_listed(compiled.stats(), {1});
}

// The net has neither parameters nor inputs, so the one bucket is empty. With the same random seed, the result is
// eager's.
TEST_F(TestFakeDistributedSingleProc, test_issue90375) {
  test::RandomProduct net;
  FakeDDP<test::RandomProduct> ddp(net, cap_mb());
  const auto counting = std::make_shared<CountingBackend>(make_backend("aot_eager"));
  auto compiled = compile(ddp, {.backend = counting});
  at::manual_seed(1337);
  const at::Tensor expected = net->forward();
  at::manual_seed(1337);
  EXPECT_THAT(compiled(), BitEqual(expected));
  ASSERT_THAT(counting->modules(), SizeIs(1));
  parallel::BucketSplitterOptions caps;
  caps.bucket_bytes_cap = ddp.bucket_options().bucket_bytes_cap;
  const auto buckets = parallel::assign_buckets(*counting->modules()[0], caps);
  ASSERT_THAT(buckets, SizeIs(1));
  EXPECT_THAT(buckets[0].parameters, IsEmpty());
  EXPECT_EQ(buckets[0].bytes, 0);
  expect_listed(compiled.stats(), {1});
}

// The symbolic sizes s0 and 2*s0 cross the cut between two products.
TEST_F(TestFakeDistributedSingleProc, test_symbol_splitting) {
  test::SymbolSplitting net;
  FakeDDP<test::SymbolSplitting> ddp(net, cap_mb());
  auto compiled = compile(ddp, {.backend = "aot_eager", .dynamic = true});
  Counts compiles;
  for (const std::int64_t batch : {20, 24, 7}) {
    const at::Tensor x = at::randn({batch, 512});
    const at::Tensor expected = net->forward(x), found = compiled(x);
    compiles.push_back(static_cast<int>(compiled.stats().compiles_in_last_call));
    EXPECT_THAT(found, BitEqual(expected)) << batch;
    const auto wanted = torch::autograd::grad({expected.sum()}, net->parameters());
    const auto gradients = torch::autograd::grad({found.sum()}, net->parameters());
    EXPECT_THAT(gradients, BitEqual(wanted)) << batch;
  }
  expect_listed(compiled.stats(), compiles);
}

}  // namespace
}  // namespace rehearse::compiler
