// SPDX-License-Identifier: BSD-3-Clause
// More seeds of TestSingleProc and TestMultiProc: regions over cuts, a batch that changes, a guard on a group.
#include <memory>

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include <rehearse/compile/counting_backend.h>
#include <rehearse/compile/watch.h>
#include <rehearse/fakes/fake_ddp.h>
#include <rehearse/sim/world.h>

#include "core/compile/recompile_counts.h"
#include "models/toy.h"

namespace rehearse::compiler {
namespace {

using fakes::FakeDDP;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

enum class Region { Autocast, EnableGrad, NoGrad };

class AutocastScope {
 public:
  AutocastScope() {
    at::autocast::set_autocast_enabled(at::kCPU, true);
    at::autocast::set_autocast_dtype(at::kCPU, at::kHalf);
    at::autocast::increment_nesting();
  }
  ~AutocastScope() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, before_);
    at::autocast::set_autocast_dtype(at::kCPU, dtype_before_);
  }

 private:
  bool before_ = at::autocast::is_autocast_enabled(at::kCPU);
  at::ScalarType dtype_before_ = at::autocast::get_autocast_dtype(at::kCPU);
};

// Toy, all of it inside a region. Each weight has 4,000,000 bytes.
struct RegionToyImpl : torch::nn::Module {
  explicit RegionToyImpl(Region where)
      : toy(register_module("toy", test::Toy(test::ToyShape{1000, 1000, 1000}))), region(where) {}
  at::Tensor forward(const at::Tensor& x) {
    switch (region) {
      case Region::Autocast: {
        const AutocastScope scope;
        return toy->forward(x);
      }
      case Region::EnableGrad: {
        const at::AutoGradMode enable(true);
        return toy->forward(x);
      }
      case Region::NoGrad:
        break;
    }
    const at::NoGradGuard no_grad;
    return toy->forward(x);
  }
  test::Toy toy;
  Region region;
};
TORCH_MODULE(RegionToy);

void expect_split_region(Region region) {
  RegionToy net(region);
  const at::Tensor x = at::randn({20, 1000});
  const at::Tensor expected = net->forward(x);
  FakeDDP<RegionToy> ddp(net, 3.5);
  const auto counting = std::make_shared<CountingBackend>();
  auto counted = compile(ddp, {.backend = counting, .fullgraph = true});
  auto compiled = compile(ddp, {.backend = "aot_eager", .fullgraph = true});
  for (const at::Tensor& found : {counted(x), compiled(x)}) {
    EXPECT_TRUE(found.equal(expected));
    EXPECT_EQ(found.scalar_type(), region == Region::Autocast ? at::kHalf : at::kFloat);
    EXPECT_EQ(found.requires_grad(), region != Region::NoGrad);
  }
  EXPECT_EQ(counting->graphs(), 4U);
  EXPECT_THAT(counted.explain().break_reasons(), SizeIs(4));
  EXPECT_THAT(counted.explain().break_reasons(), Each(HasSubstr("DDPOptimizer")));
}

// A region that covers all pieces begins and ends in each.
TEST(TestSingleProc, test_graph_split_ctx_manager) {
  for (const Region region : {Region::Autocast, Region::EnableGrad, Region::NoGrad}) {
    SCOPED_TRACE(static_cast<int>(region));
    expect_split_region(region);
  }
}

struct TransposeLinearImpl : torch::nn::Module {
  TransposeLinearImpl()
      : first(register_module("first", torch::nn::Linear(30, 70))),
        second(register_module("second", torch::nn::Linear(3500, 2048))) {}
  // x: [batch, 30, 50].
  at::Tensor forward(const at::Tensor& x) { return second(first(x.transpose(2, 1)).flatten(1)); }
  torch::nn::Linear first, second;
};
TORCH_MODULE(TransposeLinear);

// The batch becomes a symbol with the second call.
TEST(TestSingleProc, test_graph_split_inductor_transpose) {
  TransposeLinear net;
  FakeDDP<TransposeLinear> ddp(net, 25);
  auto compiled = compile(ddp, {.backend = "aot_eager", .fullgraph = true});
  std::vector<std::tuple<at::Tensor>> calls;
  for (const std::int64_t batch : {100, 200, 300}) calls.emplace_back(at::randn({batch, 30, 50}));
  const auto eager = [&](const at::Tensor& x) { return net->forward(x); };
  EXPECT_THAT(compiles(compiled, eager, calls), ElementsAre(1, 1, 0));
  EXPECT_EQ(compiled.stats().graphs, 4);
}

// Another group in the variable that the function looks at: it is compiled anew, and finds itself outside.
TEST(TestMultiProc, test_get_pg_attr) {
  for (const int ranks : {1, 2, 8}) {
    World world({.ranks = ranks});
    const Report report = world.run([](RankContext& ctx) {
      Group group = ctx.group();
      auto compiled = compile([&](const at::Tensor& x) { return watch(group) ? x - 1 : x + 1; },
                              {.backend = "eager", .fullgraph = true});
      const at::Tensor x = at::ones({4});
      EXPECT_TRUE(compiled(x).equal(x - 1));
      EXPECT_EQ(compiled.stats().compiles_in_last_call, 1);
      group = Group();
      EXPECT_TRUE(compiled(x).equal(x + 1));
      EXPECT_EQ(compiled.stats().compiles_in_last_call, 1);
      group = ctx.group();
      EXPECT_TRUE(compiled(x).equal(x - 1));
      EXPECT_EQ(compiled.stats().compiles_in_last_call, 0);
    });
    EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  }
}

}  // namespace
}  // namespace rehearse::compiler
