// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>

#include <rehearse/fakes/fake_store.h>
#include <rehearse_internal/exec/executor.h>

#include "core/exec/no_rank_state.h"

namespace rehearse::fakes::testing {

// Answers each choice by a pseudorandom number. Different seeds give different orders of the ranks, and a seed gives
// the same order in every run.
struct ScrambledOracle final : Oracle {
  explicit ScrambledOracle(std::uint64_t seed) : state(seed * 2 + 1) {}
  std::uint32_t choose(ChoiceKind, std::span<const std::uint32_t> candidates, std::span<const std::uint32_t>) override {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::uint32_t>((state >> 33) % candidates.size());
  }
  std::uint64_t state;
};

struct JumpingClock final : exec::Clock {
  VirtualTime now() const noexcept override { return time; }
  void advance_to(VirtualTime to) noexcept override { time = std::max(time, to); }
  VirtualTime time{};
};

struct EndWorld final : exec::FailureSink {
  Verdict on_rank_failure(const exec::RankFailure&) override { return Verdict::end_world; }
};

class StoreTest : public ::testing::Test {
 protected:
  // Runs `body(rank, the rank's handle)` on every rank.
  exec::RunOutcome run(int ranks, const std::function<void(int, FakeStore&)>& body, std::uint64_t seed = 1) {
    ScrambledOracle oracle(seed);
    DecisionLog log;
    Decisions decisions(oracle, log);
    JumpingClock clock;
    exec::NoRankState state;
    EndWorld sink;
    options.ranks = ranks;
    exec::RankExecutor executor(options, decisions, clock, state, sink);
    return executor.run([&](int rank) {
      const auto handle = c10::make_intrusive<FakeStore>(shared);
      body(rank, *handle);
    });
  }

  static std::vector<std::uint8_t> bytes(std::string_view text) { return {text.begin(), text.end()}; }

  exec::ExecutorOptions options;
  std::shared_ptr<StoreState> shared = std::make_shared<StoreState>();
};

}  // namespace rehearse::fakes::testing
