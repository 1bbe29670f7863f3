// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include <rehearse/comm/event_log.h>
#include <rehearse_internal/comm/group_identity.h>
#include <rehearse_internal/comm/pending.h>

#include "comm/work/rank_work.h"

namespace rehearse::comm {

// Receives whose message was shorter than their tensor, where the fabric takes such messages.
class ShortMessageLog {
 public:
  explicit ShortMessageLog(const EventLog& events) : events_(events) {}

  void note(const GroupIdentity& group, const RankWork& send, const RankWork& recv);

  // In order of each kind's first receive.
  std::vector<ShortMessages> messages() const;

 private:
  struct Kind {
    std::uint64_t first = 0;  // Event::record_id
    ShortMessages messages;
  };

  const EventLog& events_;
  // By group, the receive's signature and place, and how many elements came.
  std::map<std::tuple<std::uint32_t, std::uint64_t, std::uint32_t, std::int64_t>, Kind> kinds_;
};

}  // namespace rehearse::comm
