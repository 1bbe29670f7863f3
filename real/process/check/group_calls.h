// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <rehearse_internal/comm/group_identity.h>
#include <rehearse_internal/comm/mismatch.h>
#include <rehearse_internal/comm/pending.h>

#include "comm/agree/made_call.h"
#include "process/check/messages.h"

namespace rehearse::real {

// One rank's call that has not met its peers.
struct OpenCall {
  int rank = -1;  // within the group
  std::uint64_t sequence = 0;
  comm::Operation operation;
  std::uint64_t fingerprint = 0;
  VirtualTime since{};
  bool disagrees = false;  // with the message that it has met

  // Valid while this stays where it is.
  comm::MadeCall made() const noexcept { return {rank, sequence, &operation, fingerprint}; }
};

// The calls of one group that have not met: each rank's n-th collective belongs to the n-th of the others, and a
// receive to the oldest send of its source and tag.
class GroupCalls {
 public:
  // Told of what has met; `rank` of the world.
  using Tell = std::function<void(int rank, Go go)>;

  GroupCalls(comm::GroupIdentity identity, std::string key, Tell tell)
      : group_(std::move(identity)), key_(std::move(key)), tell_(std::move(tell)) {}

  // A call of `rank` (of the world), made now. Where it does not fit another one's, mismatch() is there, at once or
  // when the others have come.
  void add(int rank, const CallMade& made, VirtualTime now);

  // Calls that disagree give the others a second to take a side, more than lies between the ranks of one step.
  void settle(VirtualTime now);
  const std::optional<comm::Mismatch>& mismatch() const noexcept { return mismatch_; }

  // What has met although the message was shorter, in order of the receiving rank.
  std::vector<comm::ShortMessages> short_messages() const;

  // What has not met, of all ranks, with whom it waits for; in no order.
  struct Open {
    comm::PendingOperation call;
    VirtualTime since{};
    std::chrono::milliseconds timeout{0};  // its own; 0: none
    bool needs_all = true;                 // of those that it waits for; false: one is enough
  };
  std::vector<Open> open() const;

 private:
  struct Slot {
    std::vector<std::optional<OpenCall>> calls;  // by rank
    std::size_t arrived = 0;
    std::optional<VirtualTime> disputed_since;
  };
  using Mail = std::list<OpenCall>;

  void add_collective(OpenCall call, VirtualTime now);
  void add_send(OpenCall send);
  void add_receive(OpenCall recv);
  bool meet(OpenCall& send, OpenCall& recv, bool send_came_last);
  void note_short(const OpenCall& send, const OpenCall& recv);
  void go(std::uint64_t sequence, const Slot& slot);
  static std::vector<const OpenCall*> present(const Slot& slot);
  // Where the call, which is there, does not fit one that was there before.
  std::optional<comm::Mismatch> mismatch_of_edges(const Slot& slot, const OpenCall& own) const;
  comm::Mismatch mismatch_of(const Slot& slot) const;
  Open open_collective(const Slot& slot, const OpenCall& call) const;
  Open open_message(const OpenCall& call) const;
  std::string hint(const OpenCall& call) const;

  const comm::GroupIdentity group_;
  const std::string key_;
  const Tell tell_;
  CallTexts texts_;
  std::map<std::uint64_t, Slot> slots_;
  std::vector<Mail> sends_, receives_;  // by the receiving rank
  std::optional<comm::Mismatch> mismatch_;
  // By receiver, sender, elements of the receive, and of the message.
  std::map<std::tuple<int, int, std::int64_t, std::int64_t>, comm::ShortMessages> short_messages_;
};

}  // namespace rehearse::real
