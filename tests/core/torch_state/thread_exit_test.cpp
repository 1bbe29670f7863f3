// SPDX-License-Identifier: BSD-3-Clause
#include "torch_state/thread_exit.h"

#include <memory>
#include <thread>

#include <c10/util/ThreadLocalDebugInfo.h>
#include <gtest/gtest.h>

#include "core/torch_state/hand_fibers.h"

extern "C" int __cxa_thread_atexit(void (*)(void*), void*, void*) noexcept;

namespace rehearse::torch_state {
namespace {

class CountsDeath : public c10::DebugInfoBase {
 public:
  explicit CountsDeath(int& deaths) : deaths_(deaths) {}
  ~CountsDeath() override { ++deaths_; }

 private:
  int& deaths_;
};

void keep_in_thread_local(int& deaths) {
  c10::ThreadLocalDebugInfo::_push(c10::DebugInfoKind::TEST_INFO, std::make_shared<CountsDeath>(deaths));
}

TEST(ThreadExit, Executable_IsCalledByLibTorch) { EXPECT_NO_THROW(require_interposed(interposed_thread_exit())); }

TEST(ThreadExit, ThreadLocalOfAFiber_DiesWithTheFiber) {
  TorchRankState state;
  HandFibers fibers(state, 2);
  int deaths[2] = {};
  for (int rank : {0, 1}) fibers.run(rank, [&] { keep_in_thread_local(deaths[rank]); });
  EXPECT_EQ(deaths[0], 0);
  fibers.end(1);
  EXPECT_EQ(deaths[0], 0);
  EXPECT_EQ(deaths[1], 1);
  fibers.run(0, [] { EXPECT_NE(c10::ThreadLocalDebugInfo::get(c10::DebugInfoKind::TEST_INFO), nullptr); });
  fibers.end(0);
  EXPECT_EQ(deaths[0], 1);
}

TEST(ThreadExit, ThreadLocalOfTheHost_OutlivesTheFibers) {
  int deaths = 0;
  keep_in_thread_local(deaths);
  {
    TorchRankState state;
    HandFibers fibers(state, 1);
    fibers.run(0, [] { EXPECT_EQ(c10::ThreadLocalDebugInfo::get(c10::DebugInfoKind::TEST_INFO), nullptr); });
  }
  EXPECT_EQ(deaths, 0);
  c10::ThreadLocalDebugInfo::_pop(c10::DebugInfoKind::TEST_INFO);
  EXPECT_EQ(deaths, 1);
}

TEST(ThreadExit, ThreadLocalOfAnotherThread_DiesWithTheThread) {
  int deaths = 0;
  std::thread([&] { keep_in_thread_local(deaths); }).join();
  EXPECT_EQ(deaths, 1);
}

TEST(ThreadExit, Destructors_RunLastFirstAndMayRegisterMore) {
  static std::vector<int> order;
  static std::byte memory[4];
  order.clear();
  const std::vector<std::span<std::byte>> owned{memory};
  ThreadExitList list(owned);
  const auto record = [](void* object) { order.push_back(static_cast<int>(static_cast<std::byte*>(object) - memory)); };
  const auto record_and_register = [](void*) {
    __cxa_thread_atexit([](void*) { order.push_back(9); }, memory + 3, memory);
  };
  current_exit_list = &list;
  __cxa_thread_atexit(record, memory + 0, memory);
  __cxa_thread_atexit(record_and_register, memory + 1, memory);
  __cxa_thread_atexit(record, memory + 2, memory);
  EXPECT_EQ(list.size(), 3u);
  list.run();
  current_exit_list = nullptr;
  EXPECT_EQ(order, (std::vector<int>{2, 9, 0}));
}

TEST(ThreadExit, ObjectOutsideOfPerFiberMemory_StaysTheThreads) {
  static std::byte memory[4];
  static int runs = 0;
  runs = 0;
  const std::vector<std::span<std::byte>> owned{std::span(memory, 2)};
  std::thread([&] {
    ThreadExitList list(owned);
    current_exit_list = &list;
    __cxa_thread_atexit([](void*) { ++runs; }, memory + 3, memory);
    EXPECT_EQ(list.size(), 0u);
    current_exit_list = nullptr;
    EXPECT_EQ(runs, 0);
  }).join();
  EXPECT_EQ(runs, 1);
}

}  // namespace
}  // namespace rehearse::torch_state
