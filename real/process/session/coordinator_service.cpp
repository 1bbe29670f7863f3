// SPDX-License-Identifier: BSD-3-Clause
#include "coordinator_service.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>

#include <c10/util/Exception.h>
#include <rehearse_internal/archive/archive.h>
#include <rehearse_internal/exec/machine_time.h>

namespace rehearse::real {
namespace {

constexpr int kTick = -1;  // instead of a rank: the message is a tick

}  // namespace

VirtualDuration heartbeat_interval(VirtualDuration check_timeout) {
  return std::clamp<VirtualDuration>(check_timeout / 10, std::chrono::milliseconds(50), std::chrono::seconds(1));
}

CoordinatorService::CoordinatorService(c10d::Store& store, int ranks, VirtualDuration check_timeout,
                                       VirtualDuration began)
    : queue_(store),
      check_timeout_(check_timeout),
      began_(began),
      ranks_(ranks),
      coordinator_(ranks, check_timeout,
                   [this](int rank, const ToRank& message) {
                     queue_.send(MessageQueue::to_rank(rank), archive::packed(message));
                   }),
      ticks_(store),
      thread_([this](const std::stop_token& stop) { serve(stop); }),
      ticker_([this](const std::stop_token& stop) { tick(stop); }) {}

CoordinatorService::~CoordinatorService() { close(std::chrono::hours(1)); }

bool CoordinatorService::close(std::chrono::nanoseconds within) {
  if (!thread_.joinable()) return true;
  thread_.request_stop();  // before the ticker's last tick, which wakes the thread
  return ends_.join(within, thread_, ticker_);
}

// Sends a tick to the service's own queue, twice in each heartbeat interval. When serve() reads a tick, it has handled
// all messages that came before the tick.
void CoordinatorService::tick(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  try {
    bool stopped = false;
    while (!stopped) {
      never.wait_for(lock, stop, heartbeat_interval(check_timeout_) / 2, [] { return false; });
      stopped = stop.stop_requested();
      ticks_.send(MessageQueue::to_coordinator(), archive::packed(FromRank{kTick, StillAlive{}}));
    }
  } catch (const c10::Error&) {
    // The store is gone; see serve().
  }
  ends_.note();
}

void CoordinatorService::receive(const std::string& message, VirtualTime now) {
  int rank = 0;
  try {
    const auto from_rank = archive::unpacked<FromRank>(message, "a message between ranks");
    rank = from_rank.rank;
    return rank == kTick ? coordinator_.check_deadlines(now) : coordinator_.receive(from_rank, now);
  } catch (const c10::DistError&) {
    throw;  // sending failed: the store is gone
  } catch (const c10::Error& error) {
    coordinator_.give_up(rank, error.what_without_backtrace(), now);
  } catch (const std::exception& error) {
    coordinator_.give_up(rank, error.what(), now);
  }
}

void CoordinatorService::serve(const std::stop_token& stop) {
  const auto beat = heartbeat_interval(check_timeout_);
  const auto clock = [this] { return VirtualTime{exec::machine_time() - began_}; };
  auto next_beat = clock(), last = next_beat;
  try {
    while (!coordinator_.over() && !stop.stop_requested()) {
      const auto message = queue_.receive(MessageQueue::to_coordinator());
      const auto now = clock();
      // Ticks come more often than this. So if no message came for a quarter of the check timeout, this process was
      // stopped, or got no processor time.
      if (now - last >= check_timeout_ / 4) coordinator_.note_pause(now - last);
      last = now;
      receive(message, now);
      if (now < next_beat || coordinator_.over()) continue;
      for (int rank = 0; rank < ranks_; ++rank)
        queue_.send(MessageQueue::to_rank(rank), archive::packed(ToRank(StillAlive{})));
      next_beat = now + beat;
    }
  } catch (const c10::DistError&) {
    // The store is gone; each rank's session notices that without the coordinator.
  }
  ends_.note();
}

}  // namespace rehearse::real
