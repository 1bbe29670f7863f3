// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/job/spelling.h>

#include <gtest/gtest.h>

namespace rehearse {
namespace {

TEST(NearestSpelling, Misspelled_FindsTheWordAndNothingFarOff) {
  const std::vector<std::string> words{"model", "rate", "steps", "warm_up"};
  EXPECT_EQ(nearest_spelling("steps", words), "steps");
  EXPECT_EQ(nearest_spelling("stpes", words), "steps");   // swapped
  EXPECT_EQ(nearest_spelling("step", words), "steps");    // one missing
  EXPECT_EQ(nearest_spelling("modell", words), "model");  // one too many
  EXPECT_EQ(nearest_spelling("warmup", words), "warm_up");
  EXPECT_EQ(nearest_spelling("STEPS", words), "steps");
  EXPECT_EQ(nearest_spelling("Warm-Up", words), "warm_up");
  EXPECT_EQ(nearest_spelling("lr", words), "");
  EXPECT_EQ(nearest_spelling("momentum", words), "");
  EXPECT_EQ(nearest_spelling("", words), "");
  EXPECT_EQ(nearest_spelling("steps", {}), "");
  EXPECT_EQ(nearest_spelling("aa", {"ab", "ac"}), "ab");  // equally near: the first
}

}  // namespace
}  // namespace rehearse
