// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <c10/util/intrusive_ptr.h>

#include <rehearse/comm/event_log.h>
#include <rehearse_internal/comm/pending.h>

#include "comm/work/rank_work.h"

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

}  // namespace rehearse::comm
