// SPDX-License-Identifier: BSD-3-Clause
// More seed tests of TestSingleProc and TestMultiProc: autocast and grad-mode regions across cuts, a batch size that
// changes, a tensor whose collective is pending, a guard on a group.
#include <tuple>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include <rehearse/comm/async_tensor.h>
#include <rehearse/compile/watch.h>
#include <rehearse/fakes/fake_ddp.h>
#include <rehearse/parallel/distributed_data_parallel.h>

#include "bit_equal.h"
#include "core/compile/recompile_counts.h"
#include "core/compile/seeds/seed_test.h"
#include "models/toy.h"

namespace rehearse::compiler {
namespace {

using fakes::FakeDDP;
using rehearse::test::BitEqual;
using ::testing::Each;
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

// Each weight has 4,000,000 bytes.
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

// Compiles the data-parallel module `ddp` with two back ends. The module that `ddp` wraps runs inside the region.
template <class Ddp>
std::vector<CompileStats> expect_split_region(Ddp& ddp, Region region) {
  const at::Tensor x = at::randn({20, 1000});
  const at::Tensor expected = ddp.module().forward(x);
  auto counted = compile(ddp, {.backend = "counting", .fullgraph = true});
  auto compiled = compile(ddp, {.backend = "aot_eager", .fullgraph = true});
  for (const at::Tensor& found : {counted(x), compiled(x)}) {
    EXPECT_THAT(found, BitEqual(expected));
    EXPECT_EQ(found.scalar_type(), region == Region::Autocast ? at::kHalf : at::kFloat);
    EXPECT_EQ(found.requires_grad(), region != Region::NoGrad);
  }
  EXPECT_THAT(counted.explain().break_reasons(), SizeIs(4));
  EXPECT_THAT(counted.explain().break_reasons(), Each(HasSubstr("DDPOptimizer")));
  return {counted.stats(), compiled.stats()};
}

constexpr Region kRegions[] = {Region::Autocast, Region::EnableGrad, Region::NoGrad};

// A region that covers all pieces (PyTorch's context manager) begins and ends in each piece.
TEST_F(TestSingleProcUnderFakeDdp, test_graph_split_ctx_manager) {
  for (const Region region : kRegions) {
    FakeDDP ddp(RegionToy(region), cap_mb());
    for (const auto& stats : expect_split_region(ddp, region)) expect_listed(stats, {1});
  }
}
TEST_F(TestSingleProc, test_graph_split_ctx_manager) {
  on_ranks([this](RankContext& ctx) {
    for (const Region region : kRegions) {
      DistributedDataParallel ddp(RegionToy(region), ctx.group(), {.bucket_cap_mb = cap_mb()});
      for (const auto& stats : expect_split_region(ddp, region)) expect_listed(stats, {1}, ctx.rank());
    }
  });
}

struct TransposeLinearImpl : torch::nn::Module {
  TransposeLinearImpl()
      : first(register_module("first", torch::nn::Linear(30, 70))),
        second(register_module("second", torch::nn::Linear(3500, 2048))) {}
  // x has sizes [batch, 30, 50].
  at::Tensor forward(const at::Tensor& x) { return second(first(x.transpose(2, 1)).flatten(1)); }
  torch::nn::Linear first, second;
};
TORCH_MODULE(TransposeLinear);

std::vector<std::tuple<at::Tensor>> growing_batches() {
  std::vector<std::tuple<at::Tensor>> calls;
  for (const std::int64_t batch : {100, 200, 300}) calls.emplace_back(at::randn({batch, 30, 50}));
  return calls;
}

// The batch size becomes a symbol in the second call.
TEST_F(TestSingleProcUnderFakeDdp, test_graph_split_inductor_transpose) {
  TransposeLinear net;
  FakeDDP<TransposeLinear> ddp(net, cap_mb());
  auto compiled = compile(ddp, {.backend = "aot_eager", .fullgraph = true});
  const auto eager = [&](const at::Tensor& x) { return net->forward(x); };
  const Counts counts = compiles(compiled, eager, growing_batches());
  expect_listed(compiled.stats(), counts);
}
// As in the seed test, DDP wraps the compiled module.
TEST_F(TestSingleProc, test_graph_split_inductor_transpose) {
  on_ranks([this](RankContext& ctx) {
    TransposeLinear net;
    auto compiled = compile(net, {.backend = "aot_eager", .fullgraph = true});
    DistributedDataParallel ddp(net, ctx.group(), {.bucket_cap_mb = cap_mb()});
    Counts counts;
    for (const auto& [x] : growing_batches()) {
      const at::Tensor found = ddp.forward_with(compiled, x), expected = net->forward(x);
      counts.push_back(static_cast<int>(compiled.stats().compiles_in_last_call));
      EXPECT_THAT(found, BitEqual(expected));
      EXPECT_EQ(found.strides(), expected.strides());
    }
    expect_listed(compiled.stats(), counts, ctx.rank());
  });
}

// The seed test has a tensor subclass in place of AsyncTensor. A tensor of that subclass waits when something is added
// to it.
TEST_F(TestSingleProc, test_async_subclass_no_specialize) {
  on_ranks([this](RankContext& ctx) {
    auto compiled =
        compile([](const functional::AsyncTensor& x) { return x + 1; }, {.dynamic = true, .fullgraph = true});
    Counts counts;
    for (const std::int64_t length : {10, 12}) {
      EXPECT_THAT(compiled(functional::all_reduce_async(at::ones({length}), ctx.group())),
                  BitEqual(at::full({length}, ctx.size() + 1.0)));
      counts.push_back(static_cast<int>(compiled.stats().compiles_in_last_call));
    }
    expect_listed(compiled.stats(), counts, ctx.rank());
  });
}

// If the watched variable has a group that it had in no earlier call, the function compiles again. The test uses the
// empty Group that a rank gets if it is not a member.
TEST_F(TestMultiProc, test_get_pg_attr) {
  on_ranks([this](RankContext& ctx) {
    Group group = ctx.group();
    auto compiled = compile([&](const at::Tensor& x) { return watch(group) ? x - 1 : x + 1; }, {.fullgraph = true});
    const at::Tensor x = at::ones({4});
    Counts counts;
    for (const bool is_member : {true, false, true}) {
      group = is_member ? ctx.group() : Group();
      EXPECT_THAT(compiled(x), BitEqual(is_member ? x - 1 : x + 1));
      counts.push_back(static_cast<int>(compiled.stats().compiles_in_last_call));
    }
    expect_listed(compiled.stats(), counts, ctx.rank());
  });
}

}  // namespace
}  // namespace rehearse::compiler
