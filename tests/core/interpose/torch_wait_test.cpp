// SPDX-License-Identifier: BSD-3-Clause
// LibTorch, compiled long before us, waits in our functions: ivalue::Future blocks its rank only, and unwinds.
#include <ATen/core/ivalue.h>

#include <rehearse/exec/this_rank.h>

#include "core/exec/world_fixture.h"

namespace rehearse::exec::test {
namespace {

class TorchWait : public Worlds {};
REHEARSE_IN_WORLDS(TorchWait);

auto make_future() { return c10::make_intrusive<c10::ivalue::Future>(c10::IntType::get()); }

TEST_P(TorchWait, FutureOfAnotherRank_Completes) {
  auto w = world();
  const auto future = make_future();
  const auto outcome = w.run([&](int rank) {
    if (rank == 0) {
      this_rank::sleep_for(1s);
      future->markCompleted(c10::IValue(7));
    }
    future->wait();
    EXPECT_EQ(future->value().toInt(), 7);
    EXPECT_EQ(this_rank::now(), at(1s));
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

TEST_P(TorchWait, FutureThatNobodyCompletes_IsADeadlockAndUnwinds) {
  auto w = world();
  const auto future = make_future();
  int unwound = 0;
  const auto outcome = w.run([&](int) {
    struct Unwound {
      int& count;
      ~Unwound() { ++count; }
    } unwound_here{unwound};
    future->wait();
  });
  EXPECT_EQ(outcome.ending, Ending::deadlock);
  EXPECT_EQ(lines(outcome.blocked), same_line(0, ranks() - 1, "a condition variable"));
  EXPECT_EQ(unwound, ranks());
}

}  // namespace
}  // namespace rehearse::exec::test
