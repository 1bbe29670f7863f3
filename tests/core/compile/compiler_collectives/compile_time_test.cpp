// SPDX-License-Identifier: BSD-3-Clause
// Contract: compiling takes the virtual time that the world's options state. With jitter, the oracle draws how much
// longer each rank takes.
#include "compile/compiler_collectives/compile_time.h"

#include <set>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/sim/report_writers.h>
#include <rehearse/sim/world.h>

namespace rehearse::compiler {
namespace {

using namespace std::chrono_literals;

TEST(CompileTime, ByDefault_IsNone) {
  pass_compile_time(100);  // outside of any world, it does nothing
  World world({.ranks = 2});
  const auto report = world.run([](RankContext& ctx) {
    pass_compile_time(100);
    EXPECT_EQ(ctx.now(), kTimeZero);
  });
  EXPECT_EQ(report.verdict, Verdict::ok);
  EXPECT_EQ(world.decisions().decisions().size(), 1u);
}

TEST(CompileTime, EachNode_TakesItsTime) {
  const auto report = World({.ranks = 3, .compile_time = {.per_node = 2ms}}).run([](RankContext& ctx) {
    pass_compile_time(0);
    EXPECT_EQ(ctx.now() - kTimeZero, 0ms);
    pass_compile_time(static_cast<std::size_t>(ctx.rank() + 1));
    EXPECT_EQ(ctx.now() - kTimeZero, 2ms * (ctx.rank() + 1));
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << sim::to_text(report);
}

TEST(CompileTime, Jitter_MakesRanksDifferBySixteenSteps) {
  std::set<std::int64_t> seen;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const WorldOptions options{.ranks = 4, .seed = seed, .compile_time = {.per_node = 15ns, .jitter = 1.0}};
    const auto report = World(options).run([&](RankContext& ctx) {
      pass_compile_time(1);
      seen.insert((ctx.now() - kTimeZero).count());
    });
    EXPECT_EQ(report.verdict, Verdict::ok) << sim::to_text(report);
  }
  std::set<std::int64_t> all;
  for (std::int64_t step = 0; step < 16; ++step) all.insert(15 + step);
  EXPECT_EQ(seen, all);
}

TEST(CompileTime, RankThatCompilesTooLong_IsNamed) {
  const WorldOptions options{.ranks = 2, .compile_time = {.per_node = 1s}, .timeout = 1s};
  const auto report = World(options).run([](RankContext& ctx) {
    if (ctx.rank() == 1) pass_compile_time(3);
    ctx.group().barrier()->wait();
  });
  EXPECT_EQ(report.verdict, Verdict::timeout);
  EXPECT_THAT(report.headline, testing::StartsWith("rank 1 was still in a compilation at compile_time_test.cpp:"));
}

TEST(CompileTime, WhatMakesNoSense_IsRefused) {
  EXPECT_THROW(World({.compile_time = {.per_node = -1ns}}), std::invalid_argument);
  EXPECT_THROW(World({.compile_time = {.jitter = -0.5}}), std::invalid_argument);
}

}  // namespace
}  // namespace rehearse::compiler
