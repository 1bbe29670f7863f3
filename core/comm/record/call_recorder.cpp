// SPDX-License-Identifier: BSD-3-Clause
#include "call_recorder.h"

#include "comm/call/fingerprint.h"

namespace rehearse::comm {

CallRecorder::CallRecorder(const GroupIdentity& group, EventLog& log, const exec::Clock& clock, bool call_sites)
    : group_(group), events_(log), clock_(clock), call_sites_(call_sites), calls_(group.ranks.size()) {}

std::uint32_t CallRecorder::signature_of(const Operation& call, std::uint64_t hash) {
  return events_.signature_of(hash, [&call] { return comm::signature_of(call); });
}

Event& CallRecorder::record(const Operation& call, int rank, std::uint64_t sequence, std::uint32_t signature,
                            std::uint64_t hash) {
  Event event;
  event.time_created = clock_.now();
  event.seq_id = static_cast<std::uint32_t>(sequence);
  event.op_id = ++calls_[static_cast<std::size_t>(rank)];
  event.pg_id = group_.id;
  event.signature = signature;
  event.rank = group_.global_rank(rank);
  if (call.peer >= 0) event.peer = group_.global_rank(call.peer);
  event.tag = call.tag;
  Event& stored = events_.record(event, hash);
  if (call_sites_) events_.set_call_site(stored, exec::CallSite::capture());
  return stored;
}

exec::CallSite CallRecorder::call_site(const Event* event) const {
  return event != nullptr ? events_.log().call_site(*event) : exec::CallSite{};
}

}  // namespace rehearse::comm
