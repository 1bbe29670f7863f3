// SPDX-License-Identifier: BSD-3-Clause
// No graph contains the communication of Rehearse itself: compiler collectives, DDP's set-up and DDP's reductions.
#include <set>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <rehearse/compile/compile.h>
#include <rehearse/parallel/distributed_data_parallel.h>
#include <rehearse/sim/report_writers.h>
#include <rehearse/sim/world.h>

// These tests are outside namespace rehearse, because without line tables, reports take the functions of that namespace
// for library code.
namespace {

using namespace rehearse;
using namespace rehearse::compiler;

// Records which c10d functions and which methods its graphs call. Runs the graphs operator by operator.
class Targets final : public Backend {
 public:
  std::string name() const override { return "targets"; }
  CompiledGraph compile(const BackendInput& input) override {
    for (const graph::Node& node : input.module->graph()) {
      if (node.target().find("c10d") != std::string::npos || node.op() == graph::Op::CallMethod) {
        found.push_back(node.target());
      }
    }
    return make_backend("eager")->compile(input);
  }
  std::vector<std::string> found;
};

TEST(CoreStaysOutside, CompilerCollectives) {
  const auto report = World({.ranks = 2}).run([](RankContext& ctx) {
    const auto backend = std::make_shared<Targets>();
    const Group group = ctx.group();
    auto compiled = compile(
        [group](const at::Tensor& x) {
          at::Tensor sum = x * 2;
          group.allreduce(sum)->wait();
          // item() ends the segment. The next segment has compiler collectives of its own, in the middle of the call.
          return (sum.sum() > 0).item<bool>() ? sum + 1 : sum;
        },
        {.backend = backend, .group = ctx.group(), .guard_collectives = true, .name = "f"});
    for (const int rows : {3, 3, 4}) compiled(at::ones({rows}));
    // Compiled once for 3 rows and once for any number.
    EXPECT_EQ(compiled.stats().compiles, 2);
    EXPECT_THAT(backend->found, testing::ElementsAre("torch.ops.c10d.allreduce_.default", "wait",
                                                     "torch.ops.c10d.allreduce_.default", "wait"));
    EXPECT_EQ(ctx.group()->getBackend(c10::DeviceType::CPU)->getSequenceNumberForGroup(), 3);
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << sim::to_text(report);
}

TEST(CoreStaysOutside, DataParallelism) {
  const auto report = World({.ranks = 2}).run([](RankContext& ctx) {
    const auto backend = std::make_shared<Targets>();
    torch::nn::Sequential net(torch::nn::Linear(4, 8), torch::nn::ReLU(), torch::nn::Linear(8, 2));
    DistributedDataParallel ddp(net, ctx.group());
    auto compiled = compile(ddp, {.backend = backend, .fullgraph = true});
    for (int step = 0; step < 3; ++step) compiled(at::ones({3, 4}) * ctx.rank()).sum().backward();
    EXPECT_EQ(compiled.stats().compiles, 1);
    EXPECT_THAT(backend->found, testing::IsEmpty());
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << sim::to_text(report);
}

// While some ranks capture, other ranks set up DDP, which broadcasts and waits. These calls appear in no graph.
TEST(CoreStaysOutside, SetUpOfOtherRanks) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    WorldOptions options{.ranks = 4, .seed = seed};
    options.preempt = true;
    const auto report = World(options).run([](RankContext& ctx) {
      const auto backend = std::make_shared<Targets>();
      const auto capture = [&] {
        auto compiled = compile([](const at::Tensor& x) { return x.sin() + 1; }, {.backend = backend});
        compiled(at::ones({3}));
      };
      if (ctx.rank() % 2 == 0) capture();
      torch::nn::Linear net(4, 4);
      DistributedDataParallel ddp(net, ctx.group());
      if (ctx.rank() % 2 == 1) capture();
      EXPECT_THAT(backend->found, testing::IsEmpty());
    });
    EXPECT_EQ(report.verdict, Verdict::ok) << sim::to_text(report);
  }
}

}  // namespace
