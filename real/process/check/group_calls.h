// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <rehearse_internal/comm/group_identity.h>
#include <rehearse_internal/comm/mismatch.h>
#include <rehearse_internal/comm/pending.h>

#include "comm/agree/collective_calls.h"
#include "comm/agree/mailboxes.h"
#include "comm/agree/vote.h"
#include "process/check/messages.h"

namespace rehearse::real {

// One rank's call that still waits for the calls of its peers.
struct OpenCall {
  int rank = -1;  // within the group
  std::uint64_t sequence = 0;
  comm::Operation operation;
  std::uint64_t fingerprint = 0;
  VirtualTime since{};

  // Valid as long as this object is not moved.
  comm::MadeCall made() const noexcept { return {rank, sequence, &operation, fingerprint}; }
};

// The calls on one group that wait for their peers' calls. The n-th collectives of all ranks belong together. A receive
// belongs to the oldest send with its source and tag.
class GroupCalls {
 public:
  // Sends a message about a matched call or a failed barrier. `rank`: the receiver, a rank of the world.
  using Tell = std::function<void(int rank, ToRank message)>;

  // `first_mismatch` belongs to the job and must outlive this object.
  GroupCalls(comm::GroupIdentity identity, std::string key, comm::FirstMismatch& first_mismatch, Tell tell)
      : group_(std::move(identity)),
        key_(std::move(key)),
        first_mismatch_(first_mismatch),
        tell_(std::move(tell)),
        messages_(group_.ranks.size()) {}

  // Adds a call of `rank`, a rank of the world. If the call does not match another rank's call, mismatch() returns the
  // mismatch, at once or after the vote.
  void add(int rank, const CallMade& made, VirtualTime now);

  // Rank 0 of the group no longer waits in a monitoredBarrier(). The barrier fails for the ranks that are in it, and
  // for ranks that come later. Does nothing if all ranks had come.
  void give_up(const BarrierGivenUp& message);

  // A barrier that rank 0 gave up, and its state at that moment.
  struct GivenUp {
    int rank = -1;  // a rank of the world
    std::string call;
    std::string why;
    std::vector<int> missing;  // ranks of the world
  };
  const std::vector<GivenUp>& given_up() const noexcept { return given_up_; }

  // Ends the votes whose time is over.
  void settle(VirtualTime now);
  const std::optional<comm::Mismatch>& mismatch() const noexcept { return mismatch_; }

  // A mismatch whose vote is not over yet, with the calls that have come so far.
  std::optional<comm::Mismatch> pending_mismatch() const;

  // Messages that were matched although they were shorter than the receive, in order of the receiving rank.
  std::vector<comm::ShortMessages> short_messages() const;

  // An open call, and the ranks for which it waits. A call is open if it is not matched yet, or if it disagrees with
  // the call that was matched with it. The calls of a barrier that rank 0 gave up are open only if they disagree.
  // open() returns the open calls of all ranks, in no particular order.
  struct Open {
    comm::PendingOperation call;
    VirtualTime since{};
    std::chrono::milliseconds timeout{0};  // its own timeout; 0: none
    bool needs_all = true;                 // true: it needs all ranks of `call.waits_for`; false: any one of them
  };
  std::vector<Open> open() const;

 private:
  // One collective.
  struct Slot {
    explicit Slot(const comm::GroupIdentity& group) : calls(group), made(group.ranks.size()) {}

    comm::CollectiveCalls calls;
    std::vector<std::optional<OpenCall>> made;  // by rank
    std::optional<VirtualTime> settles_at;      // when the vote is over and the mismatch ends the job
    std::optional<BarrierFailed> failure;       // for a monitored barrier that rank 0 gave up: the message for rank 0
  };

  Slot& slot_of(std::uint64_t sequence);
  void fail_barrier(const Slot& slot, const OpenCall& call) const;
  void add_collective(OpenCall call, VirtualTime now);
  void add_send(OpenCall send);
  void add_receive(OpenCall recv);
  void match(OpenCall send, OpenCall recv, bool send_came_last);
  void note_short(const OpenCall& send, const OpenCall& recv);
  void close(std::uint64_t sequence);
  Open open_of(const OpenCall& call) const;
  Open open_collective(const Slot& slot, const OpenCall& call) const;
  Open open_message(const OpenCall& call) const;

  const comm::GroupIdentity group_;
  const std::string key_;
  comm::FirstMismatch& first_mismatch_;
  const Tell tell_;
  CallTexts texts_;
  std::map<std::uint64_t, Slot> slots_;  // by sequence
  std::uint64_t met_ = 0;                // the last collective that all ranks have made
  std::vector<GivenUp> given_up_;
  comm::Mailboxes<OpenCall> messages_;
  std::vector<OpenCall> disagreeing_;  // a matched send and receive that disagree
  std::optional<comm::Mismatch> mismatch_;
  // By receiver, sender, elements of the receive, and elements of the message.
  std::map<std::tuple<int, int, std::int64_t, std::int64_t>, comm::ShortMessages> short_messages_;
};

}  // namespace rehearse::real
