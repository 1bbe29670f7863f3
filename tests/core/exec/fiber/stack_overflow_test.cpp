// SPDX-License-Identifier: BSD-3-Clause
// If a rank runs out of stack, the message names the option to raise.
#include <csignal>
#include <cstdint>
#include <latch>
#include <optional>
#include <thread>

#include <rehearse_internal/exec/this_rank.h>

#include "exec/fiber/asan.h"
#include "exec/fiber/stack_overflow.h"

#include "core/exec/world_fixture.h"

namespace rehearse::exec::test {
namespace {

// AddressSanitizer writes its own report after our line and exits.
const bool kAsan = __sanitizer_start_switch_fiber != nullptr;
const char* const kOfNullPointer = kAsan ? "^AddressSanitizer:DEADLYSIGNAL" : "^$";

bool ended_by_the_fault(int status) {
  if (kAsan) return ::testing::ExitedWithCode(1)(status);
  return ::testing::KilledBySignal(SIGSEGV)(status);
}

[[gnu::noinline]] int dig(int depth) {
  volatile char frame[1024];
  frame[0] = static_cast<char>(depth);
  return (depth < 1'000'000 ? dig(depth + 1) : 0) + frame[0];
}

class StackOverflowDeathTest : public Worlds {};
REHEARSE_IN_WORLDS(StackOverflowDeathTest);

TEST_P(StackOverflowDeathTest, Recursion_NamesRankSizeAndOption) {
  const int deep = std::get<1>(GetParam()) == 1 ? 0 : ranks() - 1;
  EXPECT_EXIT(
      {
        auto w = world();
        w.options.stack_bytes = std::size_t{256} << 10;
        w.run([&](int rank) {
          this_rank::sleep_for(1ms);
          if (rank == deep) dig(0);
        });
      },
      ended_by_the_fault,
      "rehearse: stack overflow on rank " + std::to_string(deep) +
          ": its fiber's stack has 256 KiB; raise `stack_bytes` in the world's options .`stack` under .world. in a "
          "scenario.");
}

// Rehearse writes nothing about a fault that is no stack overflow.
TEST(NullPointerDeathTest, IsNotCalledAnOverflow) {
  EXPECT_EXIT(
      {
        World w(2);
        w.run([](int) {
          // An address near null, because UBSan would report null before the fault. `volatile` hides the value from the
          // compiler's warnings.
          volatile std::uintptr_t near_null = 64;
          *reinterpret_cast<volatile int*>(near_null) = 1;
        });
      },
      ended_by_the_fault, kOfNullPointer);
}

volatile std::sig_atomic_t g_faults = 0;

void count_fault(int) { g_faults = g_faults + 1; }

auto handler_of_faults() {
  struct sigaction now{};
  ::sigaction(SIGSEGV, nullptr, &now);
  return now.sa_handler;
}

// Worlds on two threads: the program's own handler gets every fault once, whichever world ends first.
TEST(StackOverflow, GuardsOfTwoThreads_LeaveFaultsToTheHandlerBefore) {
  for (const bool ends_last : {false, true}) {
    auto* const before = ::signal(SIGSEGV, count_fault);
    g_faults = 0;
    std::optional<StackOverflowGuard> guard(std::in_place, 4096);
    std::latch stands(1), may_end(1);
    std::thread other([&] {
      const StackOverflowGuard second(4096);
      stands.count_down();
      may_end.wait();
    });
    stands.wait();
    std::raise(SIGSEGV);
    EXPECT_EQ(g_faults, 1);
    if (!ends_last) guard.reset();
    std::raise(SIGSEGV);
    EXPECT_EQ(g_faults, 2);
    EXPECT_NE(handler_of_faults(), count_fault);
    may_end.count_down();
    other.join();
    EXPECT_EQ(handler_of_faults() == count_fault, !ends_last);
    guard.reset();
    EXPECT_EQ(handler_of_faults(), count_fault);
    ::signal(SIGSEGV, before);
  }
}

}  // namespace
}  // namespace rehearse::exec::test
