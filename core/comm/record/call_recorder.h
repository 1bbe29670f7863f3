// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <rehearse/comm/event_log.h>
#include <rehearse_internal/comm/group_identity.h>
#include <rehearse_internal/comm/operation.h>
#include <rehearse_internal/exec/clock.h>

#include "event_writer.h"

namespace rehearse::comm {

// Writes the calls of one group into the world's event log. The constructor's arguments must outlive it.
class CallRecorder {
 public:
  // `call_sites`: whether to record where each call was made.
  CallRecorder(const GroupIdentity& group, EventLog& log, const exec::Clock& clock, bool call_sites);

  // `hash`: the hash of the signature. Returns the signature's number.
  std::uint32_t signature_of(const Operation& call, std::uint64_t hash);

  // Records a call that `rank` (in the group) makes now. The reference is valid as long as the log, but a later call of
  // the rank may overwrite the event (see WorkRecord::event()).
  Event& record(const Operation& call, int rank, std::uint64_t sequence, std::uint32_t signature, std::uint64_t hash);

  // The place of the event's call. Empty if no place was captured, or if `event` is null because the log no longer
  // keeps it.
  exec::CallSite call_site(const Event* event) const;

  void note_completion(std::uint64_t sequence, VirtualTime now) noexcept {
    events_.note_completion(group_.id, static_cast<std::uint32_t>(sequence), now);
  }

  // Whether notes for reports are kept: only if call sites are captured.
  bool takes_notes() const noexcept { return call_sites_; }
  void note(std::uint64_t record_id, std::string text) { events_.set_note(record_id, std::move(text)); }

 private:
  const GroupIdentity& group_;
  EventWriter events_;
  const exec::Clock& clock_;
  const bool call_sites_;
  std::vector<std::uint32_t> calls_;  // by rank: collectives, sends and receives so far
};

}  // namespace rehearse::comm
