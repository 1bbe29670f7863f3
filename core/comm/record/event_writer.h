// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <rehearse/comm/event_log.h>

namespace rehearse::comm {

// The writing half of an EventLog, for code that makes groups and calls.
class EventWriter {
 public:
  explicit EventWriter(EventLog& log) noexcept : log_(log) {}

  const EventLog& log() const noexcept { return log_; }

  std::uint32_t add_group(EventLog::Group group);
  void note_other_creation(EventLog::OtherCreation creation);

  // Stores the event and fills in its record_id. `fingerprint`: the hash of its signature.
  Event& record(const Event& event, std::uint64_t fingerprint);
  void set_call_site(Event& event, const exec::CallSite& where);
  void set_note(std::uint64_t record_id, std::string note) { log_.notes_.insert_or_assign(record_id, std::move(note)); }
  void note_completion(std::uint32_t pg_id, std::uint32_t seq_id, VirtualTime now) noexcept {
    log_.hash_.add((std::uint64_t{pg_id} << 32) | seq_id);
    log_.hash_.add(static_cast<std::uint64_t>(now.time_since_epoch().count()));
  }

  // Returns the number of the signature with this hash. If it is new, `make` builds the signature.
  template <class Make>
  std::uint32_t signature_of(std::uint64_t fingerprint, const Make& make) {
    const auto [entry, is_new] =
        log_.signature_ids_.try_emplace(fingerprint, static_cast<std::uint32_t>(log_.signatures_.size()));
    if (is_new) log_.signatures_.push_back(make());
    return entry->second;
  }

 private:
  Event& next_of(std::size_t rank);

  EventLog& log_;
};

}  // namespace rehearse::comm
