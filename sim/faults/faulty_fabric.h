// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <list>
#include <map>
#include <optional>
#include <span>

#include <rehearse/comm/fabric.h>
#include <rehearse/exec/clock.h>
#include <rehearse/exec/timer_queue.h>
#include <rehearse/sim/fault.h>

namespace rehearse::sim {

// A fabric in front of another one, in which calls that were marked move later, or bring wrong data. Everything else it
// hands on. What it is given outlives it.
class FaultyFabric final : public comm::Fabric {
 public:
  FaultyFabric(comm::Fabric& below, exec::TimerQueue& timers, const exec::Clock& clock);
  ~FaultyFabric() override;

  // A call that comes next; what was said of another one at this address is forgotten.
  void forget(const comm::Operation& call) { marks_.erase(&call); }
  void delay(const comm::Operation& call, VirtualDuration by) { marks_[&call].by += by; }
  void corrupt(const comm::Operation& call, Fault::Corruption with) { marks_[&call].with = with; }

  std::span<const c10::DeviceType> device_types() const noexcept override { return below_.device_types(); }
  void open(const comm::GroupIdentity& group, const comm::GroupIdentity* parent) override {
    below_.open(group, parent);
  }
  void close(const comm::GroupIdentity& group) noexcept override { below_.close(group); }
  void abort(const comm::GroupIdentity& group, int rank) noexcept override { below_.abort(group, rank); }
  void prepare(comm::Operation& call, const comm::GroupIdentity& group) override { below_.prepare(call, group); }
  void launch(const comm::Transfer& transfer, comm::Completion& done) override;
  void cancel(comm::Completion& done) noexcept override;

 private:
  struct Mark {
    VirtualDuration by{};
    std::optional<Fault::Corruption> with;
  };
  class Marked;

  void release(const Marked& marked) noexcept;

  comm::Fabric& below_;
  exec::TimerQueue& timers_;
  const exec::Clock& clock_;
  std::map<const comm::Operation*, Mark> marks_;  // of calls that have yet to meet; looked up, never walked
  std::list<Marked> under_way_;
};

}  // namespace rehearse::sim
