// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/formatting/name_list.h>

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace {

using rehearse::some_names;

std::vector<std::string> letters(int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.emplace_back(1, static_cast<char>('a' + i));
  return names;
}

TEST(NameList, OfUpToEight_HasAll) {
  EXPECT_EQ(some_names(letters(0)), "");
  EXPECT_EQ(some_names(letters(2)), "a, b");
  EXPECT_EQ(some_names(letters(8)), "a, b, c, d, e, f, g, h");
}

TEST(NameList, OfMore_SaysHowManyAreLeftOut) {
  EXPECT_EQ(some_names(letters(11)), "a, b, c, d, e, f, g, h and 3 more");
}

}  // namespace
