// SPDX-License-Identifier: BSD-3-Clause
// Contract: ranks get the entries of a folder in the order of their names; in searches each rank keeps to an order that
// is drawn. With WorldOptions::file_time, calls on files take drawn times.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <dirent.h>
#include <gtest/gtest.h>

#include <rehearse/sim/schedule.h>
#include <rehearse/sim/world.h>
#include <rehearse_internal/sim/oracles.h>

namespace rehearse_test {
namespace {

using namespace std::chrono_literals;
using rehearse::RankContext;
using rehearse::VirtualDuration;
using rehearse::World;
using rehearse::WorldOptions;

using Names = std::vector<std::string>;

const Names kNames = {"model_01.pt", "model_02.pt", "model_10.pt", "model_7.pt", "optim.pt"};

Names listed(const std::filesystem::path& folder) {
  Names names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
  return names;
}

// Reads two entries, goes back to where the second began, and reads on.
Names listed_with_a_step_back(const std::filesystem::path& folder) {
  DIR* const open = ::opendir(folder.c_str());
  Names names;
  const auto read = [&] {
    const dirent* const entry = ::readdir(open);
    if (entry != nullptr) names.emplace_back(entry->d_name);
    return entry != nullptr;
  };
  read();
  const long place = ::telldir(open);
  read();
  ::seekdir(open, place);
  names.pop_back();
  while (read()) continue;
  ::rewinddir(open);
  const auto first = names.front();
  read();
  EXPECT_EQ(names.back(), first);
  names.pop_back();
  ::closedir(open);
  std::erase_if(names, [](const auto& name) { return name == "." || name == ".."; });
  return names;
}

std::vector<Names> orders_of_ranks(const WorldOptions& options) {
  std::vector<Names> orders(static_cast<std::size_t>(options.ranks));
  World world(options);
  const auto report = world.run([&](RankContext& ctx) {
    for (auto name = kNames.rbegin(); ctx.rank() == 0 && name != kNames.rend(); ++name)
      std::ofstream(ctx.shared_folder() / *name) << "x";
    ctx.group().barrier()->wait();
    auto& order = orders[static_cast<std::size_t>(ctx.rank())];
    order = listed(ctx.shared_folder());
    EXPECT_EQ(listed(ctx.shared_folder()), order);
    EXPECT_EQ(listed_with_a_step_back(ctx.shared_folder()), order);
  });
  EXPECT_EQ(report.verdict, rehearse::Verdict::ok) << report.headline;
  return orders;
}

TEST(ListedFolders, AreSortedInASingleRun) {
  for (const auto& order : orders_of_ranks({.ranks = 3})) EXPECT_EQ(order, kNames);
}

TEST(ListedFolders, HaveDrawnOrdersInSearches) {
  std::set<Names> orders;
  int differ = 0;
  for (std::uint64_t seed = 3; seed < 23; ++seed) {
    WorldOptions options{.ranks = 3, .seed = seed};
    rehearse::sim::take(rehearse::sim::strategy_among_many(options, {}), options);
    const auto of_ranks = orders_of_ranks(options);
    EXPECT_EQ(orders_of_ranks(options), of_ranks) << "seed " << seed;
    differ += of_ranks[0] != of_ranks[1] ? 1 : 0;
    orders.insert(of_ranks.begin(), of_ranks.end());
    for (auto order : of_ranks) {
      std::sort(order.begin(), order.end());
      EXPECT_EQ(order, kNames);
    }
  }
  EXPECT_GT(orders.size(), 5u);
  EXPECT_GT(differ, 5);
}

TEST(FileTime, IsDrawnForEachCall) {
  std::set<VirtualDuration> times;
  for (const bool preempt : {false, true}) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      World world({.ranks = 2, .seed = seed, .preempt = preempt, .file_time = 2ms});
      const auto report = world.run([&](RankContext& ctx) {
        const auto before = std::chrono::steady_clock::now();
        EXPECT_FALSE(std::filesystem::exists(ctx.shared_folder() / "none"));
        const auto time = std::chrono::steady_clock::now() - before;
        EXPECT_LE(time, 2ms);
        times.insert(time);
        std::ofstream(ctx.scratch_folder() / "log") << "x";  // its destructor waits, too
      });
      EXPECT_EQ(report.verdict, rehearse::Verdict::ok) << report.headline;
    }
  }
  EXPECT_GT(times.size(), 10u);
  EXPECT_THROW(World({.file_time = -1ns}), std::invalid_argument);
}

// A rank whose world ends while a file is being closed goes on until its next blocking call.
TEST(FileTime, EndsWithTheWorld) {
  int closed = 0;
  World world({.ranks = 2, .file_time = 10ms});
  const auto report = world.run([&](RankContext& ctx) {
    if (ctx.rank() == 1) {
      ctx.compute(1us);
      throw std::runtime_error("the end");
    }
    for (int i = 0; i < 50; ++i) {
      std::ofstream(ctx.scratch_folder() / "log") << "x";
      ++closed;
      ctx.compute(1us);
    }
  });
  EXPECT_EQ(report.verdict, rehearse::Verdict::rank_failed);
  EXPECT_LT(closed, 50);
}

}  // namespace
}  // namespace rehearse_test
