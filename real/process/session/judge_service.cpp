// SPDX-License-Identifier: BSD-3-Clause
#include "judge_service.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>

#include <c10/util/Exception.h>
#include <rehearse_internal/exec/machine_time.h>

namespace rehearse::real {
namespace {

constexpr int kTick = -1;  // instead of a rank

}  // namespace

VirtualDuration time_between_beats(VirtualDuration patience) {
  return std::clamp<VirtualDuration>(patience / 10, std::chrono::milliseconds(50), std::chrono::seconds(1));
}

JudgeService::JudgeService(c10d::Store& store, int ranks, VirtualDuration patience, VirtualDuration began)
    : mail_(store),
      patience_(patience),
      began_(began),
      ranks_(ranks),
      judge_(ranks, patience,
             [this](int rank, const ToRank& message) { mail_.send(Mail::to_rank(rank), packed(message)); }),
      ticks_(store),
      thread_([this](const std::stop_token& stop) { serve(stop); }),
      ticker_([this](const std::stop_token& stop) { tick(stop); }) {}

JudgeService::~JudgeService() { close(std::chrono::hours(1)); }

bool JudgeService::close(std::chrono::nanoseconds within) {
  if (!thread_.joinable()) return true;
  thread_.request_stop();  // before the ticker's last tick, which wakes it
  return ends_.join(within, thread_, ticker_);
}

// Sends a marker to its own queue at each interval. When it reads one, it has handled all messages before it.
void JudgeService::tick(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  try {
    bool stopped = false;
    while (!stopped) {
      never.wait_for(lock, stop, time_between_beats(patience_) / 2, [] { return false; });
      stopped = stop.stop_requested();
      ticks_.send(Mail::to_judge(), packed(FromRank{kTick, StillAlive{}}));
    }
  } catch (const c10::Error&) {
    // As in serve().
  }
  ends_.note();
}

void JudgeService::hear(const Bytes& message, VirtualTime now) {
  int rank = 0;
  try {
    const auto told = unpacked<FromRank>(message);
    rank = told.rank;
    return rank == kTick ? judge_.look(now) : judge_.hear(told, now);
  } catch (const c10::DistError&) {
    throw;  // out of sending: the store is gone
  } catch (const c10::Error& error) {
    judge_.give_up(rank, error.what_without_backtrace(), now);
  } catch (const std::exception& error) {
    judge_.give_up(rank, error.what(), now);
  }
}

void JudgeService::serve(const std::stop_token& stop) {
  const auto beat = time_between_beats(patience_);
  const auto clock = [this] { return VirtualTime{exec::machine_time() - began_}; };
  auto next_beat = clock(), last = next_beat;
  try {
    while (!judge_.over() && !stop.stop_requested()) {
      const auto message = mail_.receive(Mail::to_judge());
      const auto now = clock();
      // It ticks more often: this process was stopped, or had no time on a processor.
      if (now - last >= patience_ / 4) judge_.was_away(now - last);
      last = now;
      hear(message, now);
      if (now < next_beat || judge_.over()) continue;
      for (int rank = 0; rank < ranks_; ++rank) mail_.send(Mail::to_rank(rank), packed(ToRank(StillAlive{})));
      next_beat = now + beat;
    }
  } catch (const c10::DistError&) {
    // The store is gone: each rank sees that for itself.
  }
  ends_.note();
}

}  // namespace rehearse::real
