// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <stop_token>
#include <thread>

#include <rehearse/exec/time.h>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "process/check/judge.h"
#include "process/session/mail.h"
#include "process/session/thread_ends.h"

namespace rehearse::real {

// The Judge of a job, in the process of rank 0, on a thread of its own: it goes on while the rank computes or waits.
class JudgeService {
 public:
  // `began`: time zero of its clock, of the machine's.
  JudgeService(c10d::Store& store, int ranks, VirtualDuration patience, VirtualDuration began);
  JudgeService(const JudgeService&) = delete;
  JudgeService& operator=(const JudgeService&) = delete;
  ~JudgeService();

  // Tells its threads to end. False: one did not within that time; it may still use this, which then must stay.
  bool close(std::chrono::nanoseconds within);

 private:
  void serve(const std::stop_token& stop);
  void tick(const std::stop_token& stop);
  void hear(const Bytes& message, VirtualTime now);

  Mail mail_;
  const VirtualDuration patience_;
  const VirtualDuration began_;
  const int ranks_;
  Judge judge_;
  Mail ticks_;  // of the thread that sends them
  ThreadEnds ends_;
  std::jthread thread_, ticker_;  // last: they end first
};

// How often processes say that they are there.
VirtualDuration time_between_beats(VirtualDuration patience);

}  // namespace rehearse::real
