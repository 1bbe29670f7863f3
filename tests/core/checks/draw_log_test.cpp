// SPDX-License-Identifier: BSD-3-Clause
// Contract: take(name) returns a rank's draws, counted from the last take() of this name or the last clear(), whichever
// came later. other_draws() lists the draws that two ranks did not make equally often: the first three, and how many
// more there are.
#include <gtest/gtest.h>

#include "checks/watch/draw_log.h"

namespace {

using namespace rehearse::checks;

std::vector<std::string> taken(DrawLog& log, const std::string& name) {
  std::vector<std::string> texts;
  for (const auto& drawn : log.take(name)) texts.push_back(drawn.draw.text() + " " + std::to_string(drawn.times));
  return texts;
}

using Texts = std::vector<std::string>;

TEST(DrawLog, ReturnsDrawsSinceTheLastCallOfThatName) {
  DrawLog log;
  log.note({"rand", {}});
  log.note({"randn", {}});
  log.note({"rand", {}});
  EXPECT_EQ(taken(log, "a"), (Texts{"rand 2", "randn 1"}));
  log.note({"randn", {}});
  EXPECT_EQ(taken(log, "a"), Texts{"randn 1"});
  EXPECT_EQ(taken(log, "a"), Texts{});
  EXPECT_EQ(taken(log, "b"), (Texts{"rand 2", "randn 2"}));
  log.clear();
  EXPECT_EQ(taken(log, "b"), Texts{});
  log.note({"rand", {}});
  EXPECT_EQ(taken(log, "b"), Texts{"rand 1"});
}

std::vector<Drawn> drawn(const std::vector<std::pair<std::string, std::uint64_t>>& draws) {
  std::vector<Drawn> list;
  for (const auto& [call, times] : draws) list.push_back({{call, {}}, times});
  return list;
}

TEST(OtherDraws, AreTheLinesThatDoNotCountAlike) {
  EXPECT_EQ(other_draws(3, drawn({{"a", 1}, {"b", 2}}), 0, drawn({{"b", 2}, {"a", 1}})), Texts{});
  EXPECT_EQ(other_draws(3, drawn({{"a", 1}, {"b", 5}}), 0, drawn({{"b", 1}, {"c", 2}})),
            (Texts{"a: once on rank 3, never on rank 0", "b: 5 times on rank 3, once on rank 0",
                   "c: never on rank 3, 2 times on rank 0"}));
}

TEST(OtherDraws, AreThreeAtTheMost) {
  const auto lines = other_draws(1, drawn({{"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}, {"e", 1}}), 0, {});
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[3], "and 2 more lines that drew differently");
}

}  // namespace
