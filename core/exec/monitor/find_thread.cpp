// SPDX-License-Identifier: BSD-3-Clause
// Finds where another thread of this process is: a signal makes the thread record its stack. An interrupted system call
// continues afterwards.
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <mutex>
#include <thread>

#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/format.h>

#include <rehearse/exec/call_site.h>
#include <rehearse_internal/exec/rank_of_thread.h>

#include "quiet.h"

namespace rehearse::exec {
namespace {

// Processes that do not handle this signal ignore it.
constexpr int kAsk = SIGURG;

struct Answer {
  std::atomic<bool> given{false};
  RankOfThread owner;
  std::size_t frames = 0;
  std::array<void*, CallSite::kFramesMax> addresses{};
};

Answer g_answer;
std::atomic<bool> g_asked{false};

// Calls only functions that are allowed in a signal handler.
void on_ask(int) {
  if (!g_asked.exchange(false)) return;
  const int error = errno;
  g_answer.owner = rank_of_thread();
  g_answer.frames = CallSite::capture_to(g_answer.addresses);
  g_answer.given.store(true, std::memory_order_release);
  errno = error;
}

bool ask(pid_t thread) {
  struct sigaction action{};
  action.sa_handler = on_ask;
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  struct sigaction before{};
  sigaction(kAsk, &action, &before);
  g_answer.given = false;
  g_asked = true;
  ::syscall(SYS_tgkill, ::getpid(), thread, kAsk);
  // The signal may not reach the thread, so wait only for a while.
  for (int sample = 0; sample < 100 && !g_answer.given.load(std::memory_order_acquire); ++sample) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  g_asked = false;
  sigaction(kAsk, &before, nullptr);
  return g_answer.given.load(std::memory_order_acquire);
}

}  // namespace

Found find_thread(pid_t thread) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  Found found;
  found.call = blocked_call(thread);
  if (!ask(thread)) return found;
  found.rank = g_answer.owner.rank;
  found.at = g_answer.owner.at;
  found.stack.assign(g_answer.addresses.begin(), g_answer.addresses.begin() + static_cast<long>(g_answer.frames));
  return found;
}

std::string what_it_does(const Found& found) {
  const auto who = found.rank < 0 ? "the thread of the ranks" : fmt::format("rank {}", found.rank);
  return found.call.empty() ? who + " computes" : fmt::format("{} is blocked in {}", who, found.call);
}

std::string describe(const Found& found) {
  const auto place = CallSite::from_addresses(found.stack).describe();
  return place.empty() ? what_it_does(found) : fmt::format("{} at {}", what_it_does(found), place);
}

}  // namespace rehearse::exec
