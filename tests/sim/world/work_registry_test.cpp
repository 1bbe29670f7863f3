// SPDX-License-Identifier: BSD-3-Clause
// c10d keeps the works of functional collectives in a registry for each rank until code waits for them. A rank that
// ends without waiting, in whatever way, must leave nothing for the next world's rank of the same number.
#include <stdexcept>
#include <string>

#include <malloc.h>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <rehearse/sim/world.h>

#include "bit_equal.h"
#include "kit/boxed_op.h"

namespace rehearse {
namespace {

using rehearse::test::BitEqual;

at::Tensor functional_all_reduce(const at::Tensor& input) {
  static const test::BoxedOp<at::Tensor(const at::Tensor&, std::string, std::string)> op(
      "_c10d_functional::all_reduce");
  return op.call(input, "sum", "world");
}

at::Tensor wait_tensor(const at::Tensor& tensor) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("_c10d_functional::wait_tensor", "")
                             .typed<at::Tensor(const at::Tensor&)>();
  return op.call(tensor);
}

enum class End { all_return, one_throws, deadlock };

// Every rank leaves works behind, except rank 2 if it throws or returns early. The schedule and `end` decide whether
// some or none of them complete before the rank ends.
Verdict leave_works_behind(std::uint64_t seed, End end) {
  constexpr int kRanks = 3;
  World world({.ranks = kRanks, .seed = seed, .explain_failures = false});
  return world
      .run([&](RankContext& ctx) {
        EXPECT_EQ(c10d::get_work_registry_size(), 0u) << "rank " << ctx.rank() << " of world " << seed;
        if (end != End::all_return && ctx.rank() == 2) {
          if (end == End::deadlock) return;
          // Does not match the others' first all-reduce. If rank 2 comes first, its exception may end the world first.
          ctx.group()->barrier();
          throw std::runtime_error("boom");
        }
        for (int i = 0; i < 3; ++i) functional_all_reduce(at::full({100}, ctx.rank()));
        EXPECT_EQ(c10d::get_work_registry_size(), 3u);
        if (end != End::all_return) wait_tensor(functional_all_reduce(at::full({1}, 1)));
      })
      .verdict;
}

TEST(WorkRegistry, ThousandWorldsThatLeaveWorksBehind_DoNotGrow) {
  const auto some = [](std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t seed = first; seed < last; ++seed) {
      const auto end = static_cast<End>(seed % 3);
      const Verdict verdict = leave_works_behind(seed, end);
      EXPECT_EQ(verdict == Verdict::ok, end == End::all_return) << "world " << seed;
    }
  };
  some(0, 100);
  const std::size_t used = ::mallinfo2().uordblks;
  some(100, 1'100);
  // The limit is not 0, because malloc counts its reserve as used. If each world lost a single work, that would be a
  // megabyte.
  EXPECT_LT(::mallinfo2().uordblks, used + 16'000);
}

TEST(WorkRegistry, WorkThatTheProgramHolds_StaysUsableUntilItsRankEnds) {
  World world({.ranks = 4});
  const Report report = world.run([&](RankContext& ctx) {
    const at::Tensor sum = functional_all_reduce(at::full({3}, ctx.rank()));
    ctx.group()->barrier()->wait();
    EXPECT_EQ(c10d::get_work_registry_size(), 1u);
    EXPECT_THAT(wait_tensor(sum), BitEqual(at::full({3}, 0 + 1 + 2 + 3)));
    EXPECT_EQ(c10d::get_work_registry_size(), 0u);
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
}

}  // namespace
}  // namespace rehearse
