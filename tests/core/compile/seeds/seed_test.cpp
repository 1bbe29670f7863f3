// SPDX-License-Identifier: BSD-3-Clause
#include "core/compile/seeds/seed_test.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <numeric>
#include <stdexcept>

#include <rehearse/sim/report_writers.h>

namespace rehearse::compiler {
namespace {

std::string name_of_this_test() {
  const auto* const info = ::testing::UnitTest::GetInstance()->current_test_info();
  return std::string(info->test_suite_name()) + "." + info->name();
}

}  // namespace

void SeedTest::SetUp() {
  // A program that was packed for another machine gets the page's path from the environment.
  const char* const packed = std::getenv("REHEARSE_SEEDS_PAGE");
  std::ifstream file(packed != nullptr ? packed : REHEARSE_SEEDS_PAGE);
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  run_ = seed_run_of(page, name_of_this_test());
}

void SeedTest::TearDown() {
  if (HasFailure() || IsSkipped()) return;
  EXPECT_TRUE(compared_) << "the test compares no pieces and compiles with its row of SEEDS.md";
  EXPECT_EQ(took_cap_, run_.cap_mb.has_value()) << "the test does not take its cap from its row of SEEDS.md";
  EXPECT_EQ(took_ranks_, !run_.ranks.empty()) << "the test does not take its ranks from its row of SEEDS.md";
}

double SeedTest::cap_mb() {
  took_cap_ = true;
  if (!run_.cap_mb) throw std::runtime_error("the row in SEEDS.md of " + name_of_this_test() + " has no cap");
  return *run_.cap_mb;
}

const std::vector<int>& SeedTest::ranks() {
  took_ranks_ = true;
  if (run_.ranks.empty()) throw std::runtime_error("the row in SEEDS.md of " + name_of_this_test() + " has no ranks");
  return run_.ranks;
}

void SeedTest::on_ranks(const std::vector<std::uint64_t>& seeds, const World::Body& body) {
  for (const int size : ranks()) {
    for (const std::uint64_t seed : seeds) {
      SCOPED_TRACE(::testing::Message() << size << " ranks, seed " << seed);
      const Report report = World({.ranks = size, .seed = seed}).run(body);
      EXPECT_EQ(report.verdict, Verdict::ok) << sim::to_text(report);
      EXPECT_TRUE(report.remarks.empty()) << sim::to_text(report);
    }
  }
}

void SeedTest::expect_listed(const CompileStats& stats, const Counts& compiles_of_calls, int rank) {
  compared_ = true;
  EXPECT_EQ(compiles_of_calls, rank == 0 ? run_.compiles : run_.compiles_elsewhere);
  const auto compiles = std::accumulate(compiles_of_calls.begin(), compiles_of_calls.end(), std::int64_t{0});
  EXPECT_EQ(stats.compiles, compiles);
  EXPECT_EQ(stats.graphs, run_.pieces * compiles);
}

}  // namespace rehearse::compiler
