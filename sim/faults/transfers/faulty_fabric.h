// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include <rehearse/sim/fault.h>
#include <rehearse_internal/comm/followed_transfers.h>
#include <rehearse_internal/comm/forwarding_fabric.h>
#include <rehearse_internal/exec/clock.h>
#include <rehearse_internal/exec/timer_queue.h>

#include "partitions.h"

namespace rehearse::sim {

// A fabric in front of another one, in which calls that were marked move later, or bring wrong data, and what a
// partition stops moves when that is over. Everything else it hands on. What it is given outlives it.
class FaultyFabric final : public comm::ForwardingFabric {
 public:
  FaultyFabric(comm::Fabric& below, exec::TimerQueue& timers, const exec::Clock& clock, Partitions& partitions);
  ~FaultyFabric() override;

  // A call of `rank` that comes next. The rest is said of calls of which this has been said.
  static void expect(comm::Operation& call, int rank) { call.mark = c10::make_intrusive<Mark>(rank); }
  // From the start of the run: every transfer is followed, so that lose() finds it, and what is to be
  // overtaken is.
  void follow_all() noexcept { follows_all_ = true; }
  static void delay(comm::Operation& call, VirtualDuration by) { mark_of(call).by += by; }
  // The fault outlives the run.
  static void corrupt(comm::Operation& call, const Fault& fault) { mark_of(call).corruption = &fault; }
  // For a send: it moves after the sender's next message to another peer or with another tag, and at most `latest`
  // after it has met its receive.
  static void reorder(comm::Operation& call, VirtualDuration latest) { mark_of(call).latest = latest; }

  // `rank` (of the world) has crashed: what it takes part in, and is under way, does not come to its end. It fails at
  // once where connections break, else its calls wait until their time is over.
  void lose(int rank, bool connections_break);

  void launch(const comm::Transfer& transfer, comm::Completion& done) override;
  void cancel(comm::Completion& done) noexcept override;

 private:
  struct Mark final : comm::CallMark {
    explicit Mark(int of_rank) : rank(of_rank) {}

    const int rank;
    VirtualDuration by{};
    const Fault* corruption = nullptr;
    VirtualDuration latest{};  // zero: it is not reordered
  };
  class Marked;

  static Mark& mark_of(const comm::Operation& call) { return static_cast<Mark&>(*call.mark); }
  const Marked* waiting_in_channel_of(const Marked& pair);
  void note_arrival(const comm::Transfer& pair, int sender);
  bool is_overtaken(const comm::Transfer& pair, int sender) const;
  std::vector<Marked*> overtaken_by(const Marked& pair);
  void launch_all(std::vector<Marked*> next);
  void launch_held();

  exec::TimerQueue& timers_;
  const exec::Clock& clock_;
  const Partitions& partitions_;
  comm::FollowedTransfers<Marked> under_way_;
  bool follows_all_ = false;
  std::map<std::pair<const comm::GroupIdentity*, int>, std::uint64_t> arrived_;  // by sender: its last message
};

}  // namespace rehearse::sim
