// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <stop_token>
#include <thread>

#include <rehearse/exec/time.h>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "process/check/coordinator.h"
#include "process/session/message_queue.h"
#include "process/session/thread_ends.h"

namespace rehearse::real {

// Runs the Coordinator of a job in the process of rank 0, on a thread of its own, so that it goes on while the rank
// computes or waits.
class CoordinatorService {
 public:
  // `began`: the start of the run, by the machine's clock. The service counts its time from there.
  CoordinatorService(c10d::Store& store, int ranks, VirtualDuration check_timeout, VirtualDuration began);
  CoordinatorService(const CoordinatorService&) = delete;
  CoordinatorService& operator=(const CoordinatorService&) = delete;
  ~CoordinatorService();

  // Tells the service's threads to end, and waits for them. False: a thread did not end within `within`, and may still
  // use this object, which must then stay alive.
  bool close(std::chrono::nanoseconds within);

 private:
  void serve(const std::stop_token& stop);
  void tick(const std::stop_token& stop);
  void receive(const std::string& message, VirtualTime now);

  MessageQueue queue_;
  const VirtualDuration check_timeout_;
  const VirtualDuration began_;
  const int ranks_;
  Coordinator coordinator_;
  MessageQueue ticks_;  // for the thread that sends ticks
  ThreadEnds ends_;
  std::jthread thread_, ticker_;  // last members, so that their destructors run first
};

VirtualDuration heartbeat_interval(VirtualDuration check_timeout);

}  // namespace rehearse::real
