// SPDX-License-Identifier: BSD-3-Clause
// Ranks of a simulation read compiled graphs from a folder. The run's log has one decision for each graph that a rank
// finds there.
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/compile/compile.h>
#include <rehearse/sim/world.h>
#include <rehearse_internal/sim/oracles.h>

#include "bit_equal.h"
#include "own_process.h"

namespace rehearse::compiler {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using rehearse::test::BitEqual;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Each rank compiles and then all-reduces. `counts` are rank 0's hits, then misses.
struct RankZero {
  std::vector<std::int64_t> counts;

  World::Body body(const fs::path& folder) {
    return [this, folder](RankContext& ctx) {
      CompileOptions options{.fullgraph = true, .verify = Verify::Never, .cache_dir = folder.string()};
      auto compiled = compile([](const at::Tensor& x) { return x * 3 + 1; }, options);
      const at::Tensor y = compiled(at::ones({4}));
      ctx.group().allreduce(y)->wait();
      if (ctx.rank() == 0) counts = {compiled.stats().cache_hits, compiled.stats().cache_misses};
    };
  }
};

std::size_t decisions_of(const World& world, ChoiceKind kind) {
  std::size_t count = 0;
  for (const Decision& decision : world.decisions().decisions()) count += decision.kind == kind;
  return count;
}

class WorldCache : public ::testing::Test {
 protected:
  test::TemporaryFolder temporary_;
  fs::path full_ = temporary_.path() / "full", empty_ = temporary_.path() / "empty";
  const WorldOptions options_{.ranks = 1, .compile_time = {.per_node = 1s}};
};

TEST_F(WorldCache, TakingAGraphIsADecisionAndSavesItsTime) {
  World world(options_);
  RankZero first, second;
  const Report missed = world.run(first.body(full_));
  EXPECT_THAT(first.counts, ElementsAre(0, 1));
  EXPECT_EQ(decisions_of(world, ChoiceKind::compile_cache), 0U) << "what is not there cannot be taken";
  const Report hit = world.run(second.body(full_));
  EXPECT_THAT(second.counts, ElementsAre(1, 0));
  EXPECT_EQ(decisions_of(world, ChoiceKind::compile_cache), 1U);
  EXPECT_EQ(missed.end_time - hit.end_time, VirtualDuration(2s)) << "two nodes";
}

TEST_F(WorldCache, AReplayWithAnotherFolderSaysSo) {
  World world(options_);
  RankZero run;
  world.run(run.body(full_));
  const std::vector<Decision> without(world.decisions().decisions().begin(), world.decisions().decisions().end());
  world.run(run.body(full_));
  const std::vector<Decision> with(world.decisions().decisions().begin(), world.decisions().decisions().end());
  const auto replay = [&](const std::vector<Decision>& log, const fs::path& folder) -> std::string {
    sim::ReplayOracle oracle(log, sim::PastEnd::stop);
    World again(options_);
    again.use_oracle(oracle);
    try {
      again.run(run.body(folder));
      oracle.require_used_up();
      return "";
    } catch (const sim::ReplayError& error) {
      return error.what();
    }
  };
  EXPECT_EQ(replay(with, full_), "");
  EXPECT_THAT(run.counts, ElementsAre(1, 0));
  EXPECT_THAT(replay(with, empty_),
              HasSubstr(". The run of the log found a compiled graph in the folder of CompileOptions::cache_dir, and "
                        "this one does not. Replay with the folder as it was when that run began"));
  EXPECT_THAT(replay(without, full_),
              HasSubstr(". This run finds a compiled graph in the folder of CompileOptions::cache_dir, and the run of "
                        "the log did not. Replay with the folder as it was when that run began"));
}

TEST_F(WorldCache, EverySchedulerTakesWhatIsThere) {
  RankZero run;
  World(options_).run(run.body(full_));
  for (const Schedule schedule : {Schedule::random, Schedule::round_robin, Schedule::pct}) {
    WorldOptions options = options_;
    options.schedule = schedule;
    World(options).run(run.body(full_));
    EXPECT_THAT(run.counts, ElementsAre(1, 0)) << to_string(schedule);
  }
}

// A graph appears in the folder once its compile time has passed.
TEST_F(WorldCache, RanksReadWhatOthersOfTheirWorldHaveCompiledBefore) {
  WorldOptions options = options_;
  options.ranks = 3;
  std::vector<std::int64_t> sums{0, 0};
  const Report report = World(options).run([&](RankContext& ctx) {
    CompileOptions compiling{.fullgraph = true, .verify = Verify::Never, .cache_dir = full_.string()};
    auto compiled = compile([](const at::Tensor& x) { return x * 3 + 1; }, compiling);
    if (ctx.rank() == 2) ctx.compute(3s);
    EXPECT_THAT(compiled(at::ones({4})), BitEqual(at::full({4}, 4.F)));
    sums[0] += compiled.stats().cache_hits;
    sums[1] += compiled.stats().cache_misses;
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  EXPECT_THAT(sums, ElementsAre(1, 2));
}

}  // namespace
}  // namespace rehearse::compiler
