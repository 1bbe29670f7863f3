// SPDX-License-Identifier: BSD-3-Clause
// The program that debugger_test.cpp runs in gdb: rank 0 stops in the debugger while ranks 1 and 2 wait for it.
#include <csignal>

#include <rehearse/exec/observer.h>
#include <rehearse/exec/wait_queue.h>
#include <rehearse_internal/exec/this_rank.h>

#include "core/exec/world_fixture.h"

namespace {

rehearse::exec::WaitQueue g_queue;

[[gnu::noinline]] void wait_for_rank_0() {
  g_queue.wait(rehearse::exec::FixedObserver("rank 0's word"));
  g_queue.notify_all();
}

[[gnu::noinline]] void stop_in_the_debugger() {
  rehearse::exec::this_rank::sleep_for(std::chrono::seconds(1));
  std::raise(SIGTRAP);
  g_queue.notify_all();
}

}  // namespace

int main() {
  const auto outcome = rehearse::exec::test::World(3).run([](int rank) {
    if (rank == 0) {
      stop_in_the_debugger();
    } else {
      wait_for_rank_0();
    }
  });
  return outcome.ending == rehearse::exec::Ending::all_returned ? 0 : 1;
}
