// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <vector>

#include <rehearse/sim/fault.h>
#include <rehearse_internal/comm/fabric.h>
#include <rehearse_internal/exec/clock.h>
#include <rehearse_internal/exec/timer_queue.h>

namespace rehearse::sim {

// Where the network of a world is cut. What it is given outlives it.
class Partitions {
 public:
  Partitions(exec::TimerQueue& timers, const exec::Clock& clock, int ranks);
  Partitions(const Partitions&) = delete;
  Partitions& operator=(const Partitions&) = delete;
  ~Partitions();

  // From now on, for as long as the fault says.
  void begin(const Fault& partition);
  void end_all();
  bool any() const noexcept;

  // Does what `from` sends not reach `to`?
  bool stops(int from, int to) const;

  // Can a transfer not come to its end? Data goes from or to the root where there is one, else both ways between all.
  // `sender`: of a pair, where its receive takes any source; negative: not known.
  bool stops(const comm::Transfer& transfer, int sender) const;

  // Called whenever a cut is over, in any context.
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

}  // namespace rehearse::sim
