// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <vector>

#include <rehearse/exec/time.h>
#include <rehearse/job/fault_line.h>
#include <rehearse/sim/fault.h>
#include <rehearse_internal/comm/fabric.h>
#include <rehearse_internal/exec/clock.h>
#include <rehearse_internal/exec/timer_queue.h>

namespace rehearse::sim {

// The cuts in the network of a world. The constructor's arguments must outlive it.
class Partitions {
 public:
  Partitions(exec::TimerQueue& timers, const exec::Clock& clock, int ranks);
  Partitions(const Partitions&) = delete;
  Partitions& operator=(const Partitions&) = delete;
  ~Partitions();

  // Starts a cut now, for as long as the fault says.
  void begin(const Fault& partition);
  void end_all();
  bool any() const noexcept;

  // True if messages from `from` do not reach `to`.
  bool stops(int from, int to) const;

  // True if the transfer cannot end. Data goes from or to the root if there is one, otherwise both ways between all
  // ranks. `sender`: the sender of a pair, for receives from any source; negative: unknown.
  bool stops(const comm::Transfer& transfer, int sender) const;

  // `then` runs whenever a cut ends, on a fiber or in the scheduler's own context.
  void when_healed(std::function<void()> then) { healed_.push_back(std::move(then)); }

 private:
  class Cut;
  void end(const Cut& cut);
  void tell_healed() const;

  exec::TimerQueue& timers_;
  const exec::Clock& clock_;
  const int ranks_;
  std::list<Cut> cuts_;
  std::vector<std::function<void()>> healed_;
};

struct StandingCut {
  Fault fault;  // a partition
  VirtualTime since{};
};
// The partitions that stood at `end`. `lines` are the ledger of a run.
std::vector<StandingCut> standing_cuts(const std::vector<FaultLine>& lines, VirtualTime end);

}  // namespace rehearse::sim
