// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <rehearse/sim/world.h>
#include <rehearse_internal/sim/oracles.h>

namespace rehearse::test {

inline constexpr int kSteps = 20;

inline void train(RankContext& ctx) {
  for (int step = 1; step <= kSteps; ++step) {
    auto value = at::full({4}, static_cast<double>(ctx.rank()), at::kDouble);
    ctx.group().allreduce(value)->wait();
    ctx.expect(value.sum().item<double>() == 2.0 * ctx.size() * (ctx.size() - 1), "the sum is right");
  }
}

inline WorldOptions world_with(const std::vector<std::string>& faults, int ranks = 4) {
  WorldOptions options;
  options.ranks = ranks;
  options.network = {};
  for (const auto& text : faults) options.faults.push_back(parse_fault(text));
  return options;
}

// Runs the world, replays its decisions in a second world, and expects the same result: a run with faults must replay
// like any other.
inline Report run(const WorldOptions& options, const World::Body& body = train) {
  World world(options);
  const auto report = world.run(body);
  const auto& decisions = world.decisions().decisions();
  sim::ReplayOracle oracle({decisions.begin(), decisions.end()}, sim::PastEnd::stop, options.seed);
  World again(options);
  again.use_oracle(oracle);
  const auto second = again.run(body);
  EXPECT_EQ(second.identity, report.identity);
  EXPECT_EQ(second.headline, report.headline);
  return report;
}

inline Report run(const std::vector<std::string>& faults, const World::Body& body = train) {
  return run(world_with(faults), body);
}

// If the fault fired once, returns where, for example "rank 3 in allreduce #12 on group "world"". Otherwise returns how
// often it fired, and FaultLine::why_not.
inline std::string fired(const Report& report, std::size_t fault = 0) {
  const auto& line = report.faults.at(fault);
  if (line.times != 1) return std::to_string(line.times) + " times: " + line.why_not;
  const auto& firing = line.fired.front();
  return "rank " + std::to_string(firing.rank) + (firing.call.empty() ? "" : " in ") + firing.call;
}

}  // namespace rehearse::test
