// SPDX-License-Identifier: BSD-3-Clause
// A broken invariant ends the process with one line: which invariant, where, with what values, and for which rank.
#include <rehearse_internal/exec/check.h>

#include <string>

#include <rehearse_internal/exec/this_rank.h>

#include "core/exec/world_fixture.h"

namespace rehearse::exec::test {
namespace {

enum class Colour { red = 3 };

int pair_sum(int a, int b) { return a + b; }

// Matches all of stderr.
auto line(const std::string& check, const std::string& where, const std::string& number = "[0-9]+") {
  const std::string place = "tests/core/exec/monitor/check_test.cpp:" + number;
  return testing::MatchesRegex("rehearse: internal error at " + place + ": not " + check + ", " + where +
                               "; this is a bug in Rehearse\n");
}

TEST(CheckDeathTest, ValuesOfAllKinds_EachByItsName) {
  const std::string group = "world";
  const auto breaks = [&] { REHEARSE_CHECK(group.empty(), true, pair_sum(1, -3), 7u, Colour::red, group, "a, b"); };
  EXPECT_DEATH(breaks(), line("group.empty[(][)] [(]true = true, pair_sum[(]1, -3[)] = -2, 7u = 7, Colour::red = 3, "
                              "group = world, \"a, b\" = a, b[)]",
                              "outside of ranks"));
}

TEST(CheckDeathTest, WithoutValues_SaysTheCondition) {
  constexpr int kBefore = __LINE__;
  const auto breaks = [] { REHEARSE_CHECK(pair_sum(1, 1) == 3); };
  EXPECT_DEATH(breaks(), line("pair_sum[(]1, 1[)] == 3", "outside of ranks", std::to_string(kBefore + 1)));
}

TEST(CheckDeathTest, InARank_NamesItAndItsTime) {
  EXPECT_DEATH(World(3).run([](int rank) {
    this_rank::sleep_for(std::chrono::microseconds(5));
    REHEARSE_CHECK(rank != 1, rank);
  }),
               line("rank != 1 [(]rank = 1[)]", "on rank 1 at 5000 ns of virtual time"));
}

TEST(CheckDeathTest, LongText_IsCut) {
  const std::string text(5000, 'x');
  EXPECT_DEATH(REHEARSE_CHECK(text.empty(), text),
               line("text.empty[(][)] [(]text = " + text.substr(0, 200) + "[)]", "outside of ranks"));
}

TEST(Check, Holds_NothingIsComputed) {
  int computed = 0;
  const auto count = [&computed] { return ++computed; };
  REHEARSE_CHECK(true, count());
  EXPECT_EQ(computed, 0);
}

}  // namespace
}  // namespace rehearse::exec::test
