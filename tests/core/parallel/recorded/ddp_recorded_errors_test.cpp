// SPDX-License-Identifier: BSD-3-Clause
// The texts of DDP's errors contain PyTorch's texts.
#include <gmock/gmock.h>

#include <rehearse/parallel/comm_hooks.h>

#include "core/parallel/recorded/recorded_training.h"

namespace {

using namespace rehearse_test;
using namespace rehearse_test::recorded;

template <class Body>
void expect_error(const std::string& name, Body&& body) {
  run_ranks({.ranks = 2}, [&](RankContext& ctx) {
    EXPECT_THAT(error_of<c10::Error>([&] { body(ctx); }), testing::HasSubstr(recorded_error(name, ctx.rank())));
  });
}

TEST(DdpRecordedErrors, NoGradient) {
  expect_error("no_gradient", [](RankContext& ctx) {
    auto net = linear(6, 3);
    for (auto& parameter : net->parameters()) parameter.set_requires_grad(false);
    DistributedDataParallel ddp(net, ctx.group());
  });
}

TEST(DdpRecordedErrors, Unused) {
  expect_error("unused", [](RankContext& ctx) {
    Ddp<Branches> ddp(std::make_shared<Branches>(), ctx.group());
    for (int step = 0; step < 2; ++step) ddp(batch_of(ctx.rank(), step), true).sum().backward();
  });
}

TEST(DdpRecordedErrors, ReadyTwice) {
  expect_error("ready_twice", [](RankContext& ctx) {
    Ddp<Branches> ddp(std::make_shared<Branches>(), ctx.group(), {.find_unused_parameters = true});
    (ddp(batch_of(ctx.rank(), 0), true).sum() + ddp->never->weight.sum()).backward();
  });
}

TEST(DdpRecordedErrors, GraphChanges) {
  expect_error("graph_changes", [](RankContext& ctx) {
    Ddp<Branches> ddp(std::make_shared<Branches>(), ctx.group(), {.static_graph = true});
    for (int step = 0; step < 2; ++step) ddp(batch_of(ctx.rank(), step), step == 0).sum().backward();
  });
}

TEST(DdpRecordedErrors, TwoHooks) {
  expect_error("two_hooks", [](RankContext& ctx) {
    Ddp<recorded::Mlp> ddp(std::make_shared<recorded::Mlp>(), ctx.group());
    for (int i = 0; i < 2; ++i) ddp.register_comm_hook(rehearse::parallel::allreduce_hook(ctx.group()));
  });
}

TEST(DdpRecordedErrors, EarlyEnd) {
  expect_error("early_end", [](RankContext& ctx) {
    Ddp<recorded::Mlp> ddp(std::make_shared<recorded::Mlp>(), ctx.group());
    ddp.join(
        [&] {
          for (int step = 0; step < 1 + ctx.rank(); ++step) kSum(ddp, ctx.rank(), step);
        },
        {.throw_on_early_termination = true});
  });
}

}  // namespace
