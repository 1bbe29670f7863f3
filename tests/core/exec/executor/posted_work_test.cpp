// SPDX-License-Identifier: BSD-3-Clause
// Work posted to ranks: which fiber does it, and what happens to it when its rank ends.
#include "exec/executor/rank_life.h"

#include <memory>
#include <vector>

#include <gtest/gtest.h>

namespace rehearse::exec {
namespace {

TEST(PostedWork, FirstOfARank_NeedsAFiber) {
  PostedWork posted(2);
  std::vector<int> done;
  EXPECT_TRUE(posted.add(0, [&] { done.push_back(1); }));
  EXPECT_FALSE(posted.add(0, [&] { done.push_back(2); }));
  EXPECT_TRUE(posted.add(1, [&] { done.push_back(3); }));
  while (const auto work = posted.take(0)) (*work)();
  EXPECT_EQ(done, (std::vector<int>{1, 2}));
  EXPECT_TRUE(posted.add(0, [] {}));  // the first fiber has done all work, so this needs a new one
}

TEST(PostedWork, BehindWorkThatIsBlocked_NeedsAnotherFiber) {
  PostedWork posted(3);
  EXPECT_FALSE(posted.next_stuck());
  EXPECT_TRUE(posted.add(1, [] {}));
  EXPECT_FALSE(posted.add(1, [] {}));
  EXPECT_TRUE(posted.take(1));  // the first fiber blocks in this piece
  EXPECT_EQ(posted.next_stuck(), 1);
  EXPECT_TRUE(posted.take(1));
  EXPECT_FALSE(posted.take(1));  // the second fiber ends
  EXPECT_FALSE(posted.next_stuck());
  EXPECT_FALSE(posted.add(1, [] {}));  // the first fiber is still there
  EXPECT_EQ(posted.next_stuck(), 1);
}

TEST(PostedWork, Dropped_IsDestroyed) {
  PostedWork posted(1);
  const auto owned = std::make_shared<int>(0);
  posted.add(0, [owned] {});
  posted.drop(0);
  EXPECT_EQ(owned.use_count(), 1);
  EXPECT_FALSE(posted.take(0).has_value());
}

// As in a killed process, bury() runs no destructor of the program.
TEST(PostedWork, Buried_IsKept_AndTheNextIncarnationBeginsWithNone) {
  const auto owned = std::make_shared<int>(0);
  {
    PostedWork posted(1);
    posted.add(0, [owned] {});
    posted.bury(0);
    EXPECT_EQ(owned.use_count(), 2);
    EXPECT_TRUE(posted.add(0, [] {}));
    EXPECT_TRUE(posted.take(0).has_value());
    EXPECT_FALSE(posted.take(0).has_value());
  }
  EXPECT_EQ(owned.use_count(), 1);
}

TEST(PostedWorkDeathTest, TakingWithoutATurn_IsABrokenInvariant) {
  PostedWork posted(2);
  EXPECT_DEATH(posted.take(1), "not owner.fibers > 0 .rank = 1, owner.waiting.size.. = 0.");
  posted.add(1, [] {});
  while (posted.take(1)) {
  }
  EXPECT_DEATH(posted.take(1), "not owner.fibers > 0");
}

}  // namespace
}  // namespace rehearse::exec
