// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include <rehearse_internal/exec/executor.h>

#include "core/exec/no_rank_state.h"

// The smallest world around an executor: a seeded schedule, a clock that jumps, a sink that records.
namespace rehearse::exec::test {

using namespace std::chrono_literals;

class SeededOracle final : public Oracle {
 public:
  explicit SeededOracle(std::uint64_t seed) : random_(seed) {}
  std::uint32_t choose(ChoiceKind, std::span<const std::uint32_t> candidates, std::span<const std::uint32_t>) override {
    return static_cast<std::uint32_t>(random_() % candidates.size());
  }

 private:
  std::mt19937_64 random_;
};

class JumpingClock final : public Clock {
 public:
  VirtualTime now() const noexcept override { return now_; }
  void advance_to(VirtualTime time) noexcept override {
    if (time > now_) now_ = time;
  }

 private:
  VirtualTime now_{};
};

class RecordingSink final : public FailureSink {
 public:
  Verdict verdict = Verdict::end_world;
  std::vector<std::string> told;  // "rank 2: text"

  Verdict on_rank_failure(const RankFailure& failure) override {
    told.push_back("rank " + std::to_string(failure.rank) + ": " + failure.what);
    return verdict;
  }
};

struct World {
  explicit World(int ranks, std::uint64_t seed = 1) : oracle(seed) { options.ranks = ranks; }

  // Call it once per World.
  RunOutcome run(const std::function<void(int rank)>& body) {
    Decisions decisions(oracle, log);
    RankExecutor executor(options, decisions, clock, state, sink);
    return executor.run(body);
  }

  ExecutorOptions options;
  SeededOracle oracle;
  JumpingClock clock;
  NoRankState state;
  RecordingSink sink;
  DecisionLog log;
};

inline VirtualTime at(VirtualDuration since_start) { return kTimeZero + since_start; }

// A line for each fiber: "rank 3: a mutex held by rank 1", and "rank 3.1: ..." for a helper fiber.
inline std::vector<std::string> lines(const std::vector<BlockedFiber>& blocked) {
  std::vector<std::string> out;
  for (const auto& entry : blocked) {
    const auto helper = entry.fiber_of_rank == 0 ? "" : "." + std::to_string(entry.fiber_of_rank);
    out.push_back("rank " + std::to_string(entry.rank) + helper + ": " + entry.waits_on);
  }
  return out;
}

inline std::vector<std::string> same_line(int first, int last, const std::string& line) {
  std::vector<std::string> out;
  for (int rank = first; rank <= last; ++rank) out.push_back("rank " + std::to_string(rank) + ": " + line);
  return out;
}

// For tests over worlds of several sizes and several schedules.
class Worlds : public ::testing::TestWithParam<std::tuple<int, std::uint64_t>> {
 protected:
  int ranks() const { return std::get<0>(GetParam()); }
  World world() const { return World(ranks(), std::get<1>(GetParam())); }
};

inline std::string world_name(const ::testing::TestParamInfo<Worlds::ParamType>& info) {
  return std::to_string(std::get<0>(info.param)) + "RanksSeed" + std::to_string(std::get<1>(info.param));
}

#define REHEARSE_IN_WORLDS(fixture)                                                                             \
  INSTANTIATE_TEST_SUITE_P(Sizes, fixture,                                                                      \
                           ::testing::Combine(::testing::Values(2, 3, 8, 64, 256), ::testing::Values(1, 2, 3)), \
                           ::rehearse::exec::test::world_name)

}  // namespace rehearse::exec::test
