// SPDX-License-Identifier: BSD-3-Clause
// The layout of fibers in memory, and the place that a new fiber takes.
#include "exec/fiber/fiber_table.h"

#include <cstdint>
#include <cstring>

#include <gtest/gtest.h>

namespace rehearse::exec {
namespace {

constexpr std::uintptr_t kPairOfLines = 128;

// The table has places for three fibers in advance, and makes further ones. Static assertions in fiber.h check which
// member lies in which cache line.
TEST(FiberTable, Fibers_BeginAtPairsOfCacheLinesAndHaveRoomForAnImage) {
  for (const std::size_t image_bytes : {0, 8, 64, 200, 1500}) {
    FiberTable table;
    table.prepare(image_bytes, 3);
    for (int fibers = 0; fibers < 40; ++fibers) {
      Fiber& fiber = table.add();
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&fiber) % kPairOfLines, 0u);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(fiber.image()) % kPairOfLines, kPairOfLines / 2);
      std::memset(fiber.image(), 0x5A, image_bytes);  // AddressSanitizer checks that all of it exists
    }
  }
}

TEST(FiberTable, IdsGivenBack_AreUsedAgainWithTheirPlaces) {
  FiberTable table;
  table.prepare(100, 2);
  Fiber* const first = &table.add();
  Fiber* const second = &table.add();
  EXPECT_EQ(second->id, 1u);
  second->rank = 7;
  second->in_queue = true;
  second->state = Fiber::State::ended;
  table.give_back(1);
  Fiber& third = table.add();
  EXPECT_EQ(&third, second);
  EXPECT_EQ(third.id, 1u);
  EXPECT_EQ(third.rank, -1);
  EXPECT_FALSE(third.in_queue);
  EXPECT_EQ(table.add().id, 2u);
  EXPECT_EQ(&table[0], first);
  EXPECT_EQ(table.all().size(), 3u);
}

TEST(FiberTableDeathTest, LiveFiberGivenBack_IsABrokenInvariant) {
  FiberTable table;
  table.prepare(100, 2);
  table.add();
  EXPECT_DEATH(table.give_back(0), "not !fibers_.id.->active.. .id = 0, fibers_.id.->rank = -1, ");
  EXPECT_DEATH(table.prepare(100, 2), "bytes_of_each_ == 0");
}

TEST(FiberTableDeathTest, FiberInAnotherState_IsABrokenInvariant) {
  FiberTable table;
  table.prepare(0, 1);
  Fiber& fiber = table.add();
  require_state(fiber, Fiber::State::blocked, "a test");
  EXPECT_DEATH(require_state(fiber, Fiber::State::running, "a test"),
               "not fiber.state == wanted .in = a test, fiber.rank = -1, fiber.id = 0, fiber.state = 2, wanted = 1.");
}

}  // namespace
}  // namespace rehearse::exec
