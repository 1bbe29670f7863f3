// SPDX-License-Identifier: BSD-3-Clause
// A program that uses nothing of OpenMP but regions. The linker finds in Rehearse the functions that start regions, and
// leaves libgomp out.
#include <atomic>

#include "core/exec/world_fixture.h"

namespace rehearse::exec::test {
namespace {

int threads_of_a_region() {
  std::atomic<int> threads{0};
#pragma omp parallel num_threads(3)
  ++threads;
  return threads;
}

TEST(OpenmpAlone, Region_HasItsThreadsInRanksAndOutside) {
  for (const int ranks : {2, 3, 8}) {
    World w(ranks);
    const auto outcome = w.run([](int) { EXPECT_EQ(threads_of_a_region(), 3); });
    EXPECT_EQ(outcome.ending, Ending::all_returned);
  }
  EXPECT_EQ(threads_of_a_region(), 3);
}

}  // namespace
}  // namespace rehearse::exec::test
