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

// A fabric in front of another one. It moves calls later or corrupts their data, as delay(), reorder() and corrupt()
// request. If a partition stops a transfer, the fabric holds the transfer until the partition ends. The constructor's
// arguments must outlive it.
class FaultyFabric final : public comm::ForwardingFabric {
 public:
  FaultyFabric(comm::Fabric& below, exec::TimerQueue& timers, const exec::Clock& clock, Partitions& partitions);
  ~FaultyFabric() override;

  // Announces a call that `rank` is about to make. delay(), corrupt() and reorder() need a call that was announced.
  static void expect(comm::Operation& call, int rank) { call.mark = c10::make_intrusive<Mark>(rank); }
  // Call this before the run to follow every transfer. lose() needs this to find the rank's transfers, and reorder() to
  // notice the message that overtakes.
  void follow_all() noexcept { follows_all_ = true; }
  static void delay(comm::Operation& call, VirtualDuration by) { mark_of(call).by += by; }
  // The fault must outlive the run.
  static void corrupt(comm::Operation& call, const Fault& fault) { mark_of(call).corruption = &fault; }
  // For a send: the message moves only after the sender's next message that has another peer, tag or group, but at most
  // `latest` after the send was matched with its receive.
  static void reorder(comm::Operation& call, VirtualDuration latest) { mark_of(call).latest = latest; }

  // `rank`, a rank of the world, has crashed, so its transfers in flight never complete. They fail at once if
  // connections break; otherwise their calls wait until they time out.
  void lose(int rank, bool connections_break);

  void launch(const comm::Transfer& transfer, comm::Completion& done) override;
  void cancel(comm::Completion& done) noexcept override;

 private:
  struct Mark final : comm::CallMark {
    explicit Mark(int of_rank) : rank(of_rank) {}

    const int rank;
    VirtualDuration by{};
    const Fault* corruption = nullptr;
    VirtualDuration latest{};  // zero: not reordered
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
  std::map<std::pair<const comm::GroupIdentity*, int>, std::uint64_t> arrived_;  // by group and sender: the last number
};

}  // namespace rehearse::sim
