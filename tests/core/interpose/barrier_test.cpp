// SPDX-License-Identifier: BSD-3-Clause
// pthread barriers between ranks and threads of ranks.
#include <thread>

#include <pthread.h>

#include <rehearse_internal/exec/this_rank.h>

#include "core/exec/world_fixture.h"

namespace rehearse::exec::test {
namespace {

class PthreadBarrier : public Worlds {
 protected:
  void make(unsigned count) { ASSERT_EQ(::pthread_barrier_init(&barrier_, nullptr, count), 0); }
  void TearDown() override { EXPECT_EQ(::pthread_barrier_destroy(&barrier_), 0); }

  pthread_barrier_t barrier_{};
};
REHEARSE_IN_WORLDS(PthreadBarrier);

TEST_P(PthreadBarrier, RanksAndTheirThreads_PassWhenAllHaveCome) {
  make(static_cast<unsigned>(2 * ranks()));
  auto w = world();
  int serial = 0;
  const auto outcome = w.run([&](int rank) {
    std::thread other([&] {
      for (int round = 0; round < 3; ++round) serial += ::pthread_barrier_wait(&barrier_) != 0 ? 1 : 0;
    });
    for (int round = 0; round < 3; ++round) {
      this_rank::sleep_for(1s * rank);
      const int result = ::pthread_barrier_wait(&barrier_);
      EXPECT_TRUE(result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD);
      serial += result != 0 ? 1 : 0;
      EXPECT_EQ(this_rank::now(), at(1s * (ranks() - 1) * (round + 1)));
    }
    other.join();
  });
  EXPECT_EQ(outcome.ending, Ending::all_returned);
  EXPECT_EQ(serial, 3);
}

TEST_P(PthreadBarrier, ToWhichOneDoesNotCome_IsADeadlock) {
  make(static_cast<unsigned>(ranks()));
  auto w = world();
  const auto outcome = w.run([&](int rank) {
    if (rank != 0) ::pthread_barrier_wait(&barrier_);
  });
  EXPECT_EQ(outcome.ending, Ending::deadlock);
  EXPECT_EQ(lines(outcome.blocked),
            same_line(1, ranks() - 1,
                      "a barrier (pthread_barrier_wait) to which " + std::to_string(ranks() - 1) + " of " +
                          std::to_string(ranks()) + " threads have come"));
}

}  // namespace
}  // namespace rehearse::exec::test
