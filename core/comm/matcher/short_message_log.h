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

// Receives that got a message shorter than their tensor. Only fabrics that accept such messages produce them.
class ShortMessageLog {
 public:
  explicit ShortMessageLog(const EventLog& events) : events_(events) {}

  void note(const GroupIdentity& group, const RankWork& send, const RankWork& recv);

  // One item for each kind of receive (group, signature, place and number of elements received), in the order of each
  // kind's first receive.
  std::vector<ShortMessages> messages() const;

 private:
  struct Kind {
    std::uint64_t first = 0;  // Event::record_id
    ShortMessages messages;
  };

  const EventLog& events_;
  // By group, by the receive's signature and place, and by the number of elements received.
  std::map<std::tuple<std::uint32_t, std::uint64_t, std::uint32_t, std::int64_t>, Kind> kinds_;
};

}  // namespace rehearse::comm
