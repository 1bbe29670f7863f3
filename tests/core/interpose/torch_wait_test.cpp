// SPDX-License-Identifier: BSD-3-Clause
// LibTorch, compiled without knowledge of Rehearse, waits in our functions. So ivalue::Future::wait() blocks only its
// rank, and unwinds when the world ends.
#include <latch>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <ATen/core/ivalue.h>

#include <rehearse_internal/exec/exempt_libraries.h>
#include <rehearse_internal/exec/this_rank.h>

#include "core/exec/machine_time_world.h"

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

TEST_P(TorchWait, FutureThatNeverCompletes_IsADeadlockAndUnwinds) {
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

// Autograd's device threads, too, are real threads that complete futures.
TEST(TorchWaitInRealTime, FutureThatARealThreadCompletes_WakesTheRanks) {
  const auto future = make_future();
  std::latch ranks_wait(2);
  std::thread thread([&] {
    ranks_wait.wait();
    future->markCompleted(c10::IValue(7));
  });
  MachineTimeWorld w(2);
  int seen = 0;
  const auto outcome = w.run([&](RankExecutor&, int) {
    ranks_wait.count_down();
    future->wait();
    seen += static_cast<int>(future->value().toInt());
  });
  thread.join();
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(seen, 14);
}

// Other libraries are exempt. LibTorch still waits in our functions.
TEST(TorchWaitBesideExemptLibraries, Future_SuspendsItsRank) {
  const auto is_libtorch = [](std::string_view path) {
    return path.find("/libtorch") != std::string_view::npos || path.find("/libc10") != std::string_view::npos;
  };
  std::vector<std::string> libtorch;
  const auto changed = exempt_libraries([&](std::string_view path) {
    if (is_libtorch(path)) libtorch.emplace_back(path);
    return path.find("gomp") != std::string_view::npos;
  });
  EXPECT_GE(libtorch.size(), 2u);
  for (const auto& library : changed) EXPECT_FALSE(is_libtorch(library.path)) << library.path;
  World w(2);
  const auto future = make_future();
  const auto outcome = w.run([&](int rank) {
    if (rank == 0) {
      this_rank::sleep_for(1s);
      future->markCompleted(c10::IValue(7));
    }
    future->wait();
    EXPECT_EQ(this_rank::now(), at(1s));
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
}

}  // namespace
}  // namespace rehearse::exec::test
