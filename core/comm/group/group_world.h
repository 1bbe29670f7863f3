// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <c10/util/intrusive_ptr.h>

#include <rehearse/comm/event_log.h>
#include <rehearse_internal/comm/communicator_options.h>
#include <rehearse_internal/comm/pending.h>

#include "comm/call/payload_names.h"
#include "comm/matcher/services.h"
#include "comm/record/event_writer.h"
#include "comm/work/rank_work.h"
#include "group_registry.h"

namespace rehearse::comm {

class GroupState;

// Works that were destroyed, or whose rank ended, although the program had neither waited for them nor seen their end.
class UnwaitedLog {
 public:
  explicit UnwaitedLog(const EventLog& events) : events_(events) {}

  void note(GroupState& group, const RankWork& work);

  // One entry for each kind of call (group, signature and place), in the order of each kind's first call. Leaves out
  // ranks that have learned of the end of their calls from a later call (see GroupState::known_until()).
  std::vector<UnwaitedCalls> calls() const;

 private:
  struct Unwaited {
    c10::intrusive_ptr<GroupState> group;
    std::string call;
    bool are_messages = false;
    std::uint64_t first = 0;  // Event::record_id
    exec::CallSite where;
    std::map<int, UnwaitedCalls::OfRank> ranks;
  };

  const EventLog& events_;
  std::map<std::tuple<std::uint32_t, std::uint64_t, std::uint32_t>, Unwaited> unwaited_;  // by group, signature, place
};

// The state that the groups of one world share, and the groups themselves. Ranks are ranks of the world. The
// constructor's arguments must outlive it.
class GroupWorld {
 public:
  GroupWorld(exec::RankExecutor& executor, Fabric& fabric, EventLog& log, CheckerSink& sink,
             const CommunicatorOptions& options);
  GroupWorld(const GroupWorld&) = delete;
  GroupWorld& operator=(const GroupWorld&) = delete;
  ~GroupWorld();  // closes all groups

  // Call this when a rank makes a call.
  void note_work(int rank, RankWork& work) noexcept { works_[static_cast<std::size_t>(rank)].push_back(work); }

  // Call this when a rank learns that one of its calls has failed, or when one of its waits has timed out.
  void note_failure_known(int rank) noexcept { known_failures_[static_cast<std::size_t>(rank)] = log.size(); }
  // The number of calls that the world had made when the rank last learned of a failure. 0: the rank knows of none.
  std::uint64_t calls_before_failure(int rank) const noexcept {
    return known_failures_[static_cast<std::size_t>(rank)];
  }

  // See Communicators.
  void release_works() noexcept;
  void wait_for_works();

  // See Communicators::begin_again().
  void begin_again(int rank) noexcept;

  const CommunicatorOptions options;
  EventLog& log;
  EventWriter events{log};
  Mismatches mismatches;
  ShortMessageLog short_messages{log};
  Habits habits;
  Services services;
  PayloadNames payloads;
  UnwaitedLog unwaited{log};
  GroupRegistry groups;

 private:
  std::vector<RankWorks> works_;               // the works that still exist, by rank
  std::vector<std::uint64_t> known_failures_;  // by rank
};

}  // namespace rehearse::comm
