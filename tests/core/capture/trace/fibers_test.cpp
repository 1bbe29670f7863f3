// SPDX-License-Identifier: BSD-3-Clause
// Many ranks capture at once. A rank may also capture after the forward of a DDP model, while the Reducer waits for the
// backward.
#include <algorithm>
#include <cstdint>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <rehearse/parallel/distributed_data_parallel.h>
#include <rehearse/sim/world.h>
#include <rehearse_internal/capture/errors.h>
#include <rehearse_internal/capture/fake_errors.h>
#include <rehearse_internal/exec/this_rank.h>
#include <rehearse_internal/graph/structural_hash.h>

#include "models/toy.h"
#include "models/transformer.h"
#include "traced.h"

namespace rehearse::capture::test {
namespace {

using rehearse::test::Toy;
using rehearse::test::ToyShape;

TEST(CaptureFibers, SixtyFourRanks_CaptureAtOnceAndSwitchWithin) {
  std::vector<std::uint64_t> hashes(64);
  std::vector<int> order;
  World world({.ranks = 64, .seed = 3});
  const Report report = world.run([&](RankContext& ctx) {
    const auto rank = static_cast<std::size_t>(ctx.rank());
    Toy toy(ToyShape{4, 6, 3});
    const Function function = [&](const Tensors& x) {
      auto y = x[0] * 2;
      exec::this_rank::yield();
      order.push_back(ctx.rank());
      const at::NoGradGuard no_grad;
      y = y + toy->forward(x[0]).sum();
      exec::this_rank::yield();
      return Tensors{toy->forward(x[0]) + y.sum()};
    };
    const auto captured = trace(function, {at::randn({5, 4})}, {{0, 0}}, named_tensors(*toy));
    hashes[rank] = graph::structural_hash(*captured.module);
    expect_same(captured, function, {at::randn({7, 4})}, toy->parameters());
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_EQ(std::count(hashes.begin(), hashes.end(), hashes[0]), 64);
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
}

TEST(CaptureFibers, NoReducerHookFiresAndAForwardUnderWayStaysValid) {
  World world({.ranks = 2, .seed = 1});
  const Report report = world.run([](RankContext& ctx) {
    at::manual_seed(5);
    Toy toy(ToyShape{4, 6, 3}), twin(ToyShape{4, 6, 3});
    {
      const at::NoGradGuard no_grad;
      for (std::size_t i = 0; i < toy->parameters().size(); ++i) twin->parameters()[i].copy_(toy->parameters()[i]);
    }
    DistributedDataParallel ddp(toy, ctx.group().get());
    int hooks = 0;
    for (const auto& parameter : toy->parameters()) {
      parameter.register_hook([&hooks](const at::Tensor& gradient) {
        ++hooks;
        return gradient;
      });
    }
    std::vector<std::uint32_t> versions;
    for (const auto& parameter : toy->parameters()) versions.push_back(parameter._version());
    const auto x = at::ones({5, 4}) * (ctx.rank() + 1);
    const auto y = ddp.forward(x);
    const Function zeroes = [&](const Tensors& in) { return toy->zero_grad(), in; };
    EXPECT_THROW(trace(zeroes, {x}, {}, named_tensors(*toy)), NotCapturable);
    const Function function = [&](const Tensors& in) { return Tensors{toy->forward(in[0])}; };
    const auto captured = trace(function, {x}, {}, named_tensors(*toy));
    EXPECT_EQ(hooks, 0);
    for (std::size_t i = 0; i < versions.size(); ++i) EXPECT_EQ(toy->parameters()[i]._version(), versions[i]);
    y.sum().backward();
    EXPECT_EQ(hooks, 8);
    (twin->forward(at::ones({5, 4})).sum() / 2 + twin->forward(at::ones({5, 4}) * 2).sum() / 2).backward();
    for (std::size_t i = 0; i < versions.size(); ++i) {
      EXPECT_TRUE(at::allclose(toy->parameters()[i].grad(), twin->parameters()[i].grad())) << i;
    }
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
}

TEST(CaptureFibers, FakeInAnotherFiber_IsAnError) {
  World world({.ranks = 2, .seed = 1});
  at::Tensor passed;
  const Report report = world.run([&](RankContext& ctx) {
    if (ctx.rank() == 0) {
      trace(
          [&](const Tensors& x) {
            passed = x[0];
            exec::this_rank::yield();
            while (passed.defined()) exec::this_rank::yield();
            return Tensors{x[0] + 1};
          },
          {at::ones({2})});
      return;
    }
    while (!passed.defined()) exec::this_rank::yield();
    EXPECT_THROW(passed + 1, FakeOutsideMode);
    passed = at::Tensor();
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
}

}  // namespace
}  // namespace rehearse::capture::test
