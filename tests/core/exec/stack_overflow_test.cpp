// SPDX-License-Identifier: BSD-3-Clause
// A rank that runs out of stack says so, with the option to raise.
#include <csignal>

#include "world_fixture.h"

namespace rehearse::exec::test {
namespace {

// AddressSanitizer writes its own report after our line and exits.
#if defined(REHEARSE_ASAN)
const ::testing::ExitedWithCode kEndOfProcess(1);
constexpr const char* kOfNullPointer = "^AddressSanitizer:DEADLYSIGNAL";
#else
const ::testing::KilledBySignal kEndOfProcess(SIGSEGV);
constexpr const char* kOfNullPointer = "^$";
#endif

[[gnu::noinline]] int dig(int depth) {
  volatile char frame[1024];
  frame[0] = static_cast<char>(depth);
  return (depth < 1'000'000 ? dig(depth + 1) : 0) + frame[0];
}

TEST(StackOverflowDeathTest, Recursion_NamesRankSizeAndOption) {
  EXPECT_EXIT(
      {
        World w(3);
        w.options.stack_bytes = std::size_t{256} << 10;
        w.run([](int rank) {
          if (rank == 1) dig(0);
        });
      },
      kEndOfProcess,
      "rehearse: stack overflow on rank 1: its fiber's stack has 256 KiB; raise `stack_bytes` in the world's options");
}

// Some other fault is none of ours.
TEST(StackOverflowDeathTest, NullPointer_IsNotCalledAnOverflow) {
  EXPECT_EXIT(
      {
        World w(2);
        w.run([](int) {
          volatile int* nowhere = nullptr;
          *nowhere = 1;
        });
      },
      kEndOfProcess, kOfNullPointer);
}

}  // namespace
}  // namespace rehearse::exec::test
