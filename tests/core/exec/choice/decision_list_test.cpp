// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/exec/decision_list.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace rehearse {
namespace {

DecisionList list_of(const std::vector<Decision>& decisions) { return DecisionList(decisions); }

TEST(DecisionList, Bytes_AreTwoForSmallNumbers) {
  EXPECT_EQ(list_of({{ChoiceKind::next_fiber, 7, 6}}).bytes(), "\x70\x06");
  EXPECT_EQ(list_of({{ChoiceKind::latency, 16, 15}}).bytes(), "\x82\x02\x0f");
  EXPECT_EQ(list_of({}).bytes(), "");
}

TEST(DecisionList, AnyDecision_ComesBack) {
  constexpr auto kMost = std::numeric_limits<std::uint32_t>::max();
  std::vector<Decision> decisions;
  for (const std::uint32_t options : {2u, 7u, 8u, 127u, 128u, 65536u, kMost}) {
    for (const std::uint32_t answer : {0u, 1u, options / 2, options - 1}) {
      decisions.push_back({ChoiceKind::next_fiber, options, answer});
      decisions.push_back({ChoiceKind::fault, options, answer});
    }
  }
  const DecisionList list(decisions);
  EXPECT_EQ(list.size(), decisions.size());
  EXPECT_EQ(std::vector<Decision>(list.begin(), list.end()), decisions);
  EXPECT_EQ(DecisionList::from_bytes(std::string(list.bytes()), decisions.size()), list);
}

TEST(DecisionList, OfAnyLength_ComesBackAndGoesOn) {
  constexpr std::uint32_t kOptions = 1000;
  DecisionList list;
  std::vector<Decision> decisions;
  for (std::uint32_t i = 0; i < 100'000; ++i) {
    decisions.push_back({ChoiceKind::next_fiber, kOptions, i % kOptions});
    list.push_back(decisions.back());
    // A check at every length would take too long.
    if (i > 40 && i % 9'973 != 0) continue;
    ASSERT_EQ(std::vector<Decision>(list.begin(), list.end()), decisions);
    ASSERT_EQ(DecisionList::from_bytes(std::string(list.bytes()), decisions.size()), list);
  }
  EXPECT_EQ(std::vector<Decision>(list.begin(), list.end()), decisions);
}

TEST(DecisionList, OneReadFromBytes_GoesOn) {
  auto list = *DecisionList::from_bytes("\x70\x06", 1);
  list.push_back({ChoiceKind::next_fiber, 7, 5});
  EXPECT_EQ(list, list_of({{ChoiceKind::next_fiber, 7, 6}, {ChoiceKind::next_fiber, 7, 5}}));
}

TEST(DecisionList, CopiesAreApart_AndAMovedOneIsEmpty) {
  DecisionList list = list_of({{ChoiceKind::next_fiber, 7, 6}});
  DecisionList copy = list;
  copy.push_back({ChoiceKind::next_fiber, 7, 5});
  EXPECT_EQ(list.bytes(), "\x70\x06");
  EXPECT_EQ(copy.bytes(), "\x70\x06\x70\x05");
  const DecisionList moved = std::move(copy);
  EXPECT_EQ(moved.size(), 2u);
  EXPECT_TRUE(copy.empty());  // NOLINT(bugprone-use-after-move): the test checks the moved-from list
  EXPECT_EQ(copy.begin(), copy.end());
  copy.push_back({ChoiceKind::next_fiber, 7, 6});
  EXPECT_EQ(copy, list);
}

TEST(DecisionList, WrongBytes_AreRefused) {
  const std::string bytes = "\x70\x06";
  EXPECT_EQ(DecisionList::from_bytes(bytes, 2), std::nullopt);                    // fewer than 2 decisions
  EXPECT_EQ(DecisionList::from_bytes(bytes, 0), std::nullopt);                    // more than 0 decisions
  EXPECT_EQ(DecisionList::from_bytes("\x70", 1), std::nullopt);                   // the answer is missing
  EXPECT_EQ(DecisionList::from_bytes("\x70\x07", 1), std::nullopt);               // the options are 0 to 6
  EXPECT_EQ(DecisionList::from_bytes("\x70\xff\xff", 1), std::nullopt);           // ends within a number
  EXPECT_EQ(DecisionList::from_bytes(std::string(30, '\xff'), 1), std::nullopt);  // longer than 64 bits
  const std::string tenth = std::string(1, '\xf0') + std::string(8, '\x80');
  EXPECT_EQ(DecisionList::from_bytes(tenth + "\x02\x06", 1), std::nullopt);     // a number of 65 bits
  EXPECT_EQ(DecisionList::from_bytes("", std::size_t{1} << 60), std::nullopt);  // must not allocate this much
}

}  // namespace
}  // namespace rehearse
