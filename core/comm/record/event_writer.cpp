// SPDX-License-Identifier: BSD-3-Clause
#include "event_writer.h"

#include <utility>

namespace rehearse::comm {

std::uint32_t EventWriter::add_group(EventLog::Group group) {
  log_.groups_.push_back(std::move(group));
  return static_cast<std::uint32_t>(log_.groups_.size() - 1);
}

void EventWriter::note_other_creation(EventLog::OtherCreation creation) {
  log_.other_creations_.push_back(std::move(creation));
}

Event& EventWriter::record(const Event& event, std::uint64_t fingerprint) {
  log_.hash_.add((static_cast<std::uint64_t>(static_cast<std::uint32_t>(event.rank)) << 32) | event.seq_id);
  log_.hash_.add(fingerprint ^ event.pg_id);
  log_.hash_.add(static_cast<std::uint64_t>(event.time_created.time_since_epoch().count()) ^
                 (static_cast<std::uint64_t>(static_cast<std::uint32_t>(event.peer)) << 32) ^
                 static_cast<std::uint32_t>(event.tag));
  Event& stored = log_.options_.keep_all ? log_.all_.emplace_back() : next_of(static_cast<std::size_t>(event.rank));
  stored = event;
  stored.record_id = log_.records_++;
  return stored;
}

Event& EventWriter::next_of(std::size_t rank) {
  auto& made = log_.made_[rank];
  auto& round = log_.rounds_[made.next_round];
  if (round.empty()) [[unlikely]]
    round.resize(log_.made_.size());
  ++made.events;
  if (++made.next_round == log_.rounds_.size()) made.next_round = 0;
  return round[rank];
}

void EventWriter::set_call_site(Event& event, const exec::CallSite& where) {
  auto& sites = log_.call_sites_;
  const auto [entry, is_new] = log_.call_site_ids_.try_emplace(where, static_cast<std::uint32_t>(sites.size()));
  if (is_new) sites.push_back(where);
  event.call_site = entry->second;
}

}  // namespace rehearse::comm
