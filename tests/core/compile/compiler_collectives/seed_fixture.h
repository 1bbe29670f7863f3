// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/comm/object_collectives.h>
#include <rehearse/compile/compile.h>
#include <rehearse/sim/report_writers.h>
#include <rehearse/sim/world.h>

#include "bit_equal.h"
#include "core/compile/seeds/seed_run.h"  // Counts

namespace rehearse::compiler {

using test::BitEqual;

// Runs `body` under three schedules on 2 ranks, as many as PyTorch's tests have, and on 8. Each run must end with the
// verdict OK and without remarks.
inline void on_ranks(const World::Body& body) {
  for (const int ranks : {2, 8}) {
    for (const std::uint64_t seed : {1, 2, 3}) {
      const auto report = World({.ranks = ranks, .seed = seed}).run(body);
      EXPECT_EQ(report.verdict, Verdict::ok) << sim::to_text(report);
      EXPECT_THAT(report.remarks, testing::IsEmpty());
    }
  }
}

// Expects that every rank has compiled as often as rank 0. docs/SEEDS.md calls this "same-N".
template <class Compiled>
void expect_same_number(RankContext& ctx, const Compiled& compiled) {
  const auto all = comm::all_gather_object(ctx.group(), std::to_string(compiled.stats().compiles));
  for (const auto& number : all) EXPECT_EQ(number, all[0]);
}

// Options with compiler collectives among all ranks.
inline CompileOptions together(RankContext& ctx) {
  CompileOptions options;
  options.group = ctx.group();
  options.fullgraph = true;
  options.name = "f";
  return options;
}

// Calls `compiled` with each element of `calls`. The results must equal those of `function`. Returns the number of
// compilations in each call.
template <class Function, class Compiled, class... Args>
Counts call_each(Function function, Compiled& compiled, const std::vector<std::tuple<Args...>>& calls) {
  Counts counts;
  for (const auto& arguments : calls) {
    const at::Tensor found = std::apply(compiled, arguments);
    EXPECT_THAT(found, BitEqual(std::apply(function, arguments))) << "call " << counts.size() + 1;
    counts.push_back(static_cast<int>(compiled.stats().compiles_in_last_call));
  }
  return counts;
}

}  // namespace rehearse::compiler
