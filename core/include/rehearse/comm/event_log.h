// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <rehearse/comm/signature.h>
#include <rehearse/comm/span_log.h>
#include <rehearse/exec/call_site.h>
#include <rehearse/exec/time.h>
#include <rehearse/hash/word_hash.h>

namespace rehearse::comm {

// One call of one rank, in one cache line. Names are those of c10d's flight recorder if it has the field.
struct alignas(64) Event {
  static constexpr VirtualTime kNever = VirtualTime::min();
  static constexpr std::uint64_t kNotRecorded = ~std::uint64_t{0};  // the record_id of a call without an event

  std::uint64_t record_id = 0;        // counts the calls of all ranks, from 0
  VirtualTime time_created = kNever;  // when the rank made the call
  VirtualTime time_started = kNever;  // when the transfer began, after the last rank, or the peer, had arrived
  VirtualTime time_ended = kNever;    // when it completed or failed
  std::uint32_t seq_id = 0;           // collective_seq_id, or p2p_seq_id for sends and receives; from 1
  std::uint32_t op_id : 31 = 0;       // counts collectives and messages of this rank and group together; from 1
  std::uint32_t failed : 1 = 0;       // it ended with an error, for example after a timeout or an abort
  std::uint32_t pg_id = 0;
  std::uint32_t signature = 0;
  std::int32_t rank = -1;  // in the world
  std::int32_t peer = -1;  // in the world, for sends and receives; -1: any rank, or no peer
  std::int32_t tag = 0;
  std::uint32_t call_site = 0;  // see EventLog::call_site(); equal for calls from equal stacks, 0: not captured

  bool ended() const noexcept { return time_ended != kNever; }
  bool completed() const noexcept { return ended() && failed == 0; }
};
static_assert(sizeof(Event) == 64);

// A record as c10d's flight recorder dumps it, without the stack frames. fr_trace reads the JSON that is written from
// it.
struct FlightRecord {
  std::uint64_t record_id;
  std::uint32_t pg_id;
  std::string process_group_name, process_group_desc;
  std::uint64_t collective_seq_id, p2p_seq_id, op_id;
  std::string profiling_name;  // "nccl:all_reduce", "nccl:send 0->1": the tools accept no other prefix
  std::int64_t time_created_ns;
  std::int64_t time_discovered_started_ns, time_discovered_completed_ns;  // -1: not yet
  double duration_ms;                                                     // -1: not completed
  std::vector<std::vector<std::int64_t>> input_sizes, output_sizes;
  std::vector<std::string> input_dtypes, output_dtypes;  // "Float", as c10 prints them
  std::string state;                                     // "scheduled", "started", "completed"
  bool retired;
  std::uint64_t timeout_ms;
  bool is_p2p;
};

struct EventLogOptions {
  int ranks = 1;
  std::size_t last_of_each_rank = 16;  // how many events of each rank the log keeps
  bool keep_all = false;               // keep all events instead, at 64 bytes each
};

// Every collective and point-to-point call of a world: the last few of each rank or all of them, and a hash over all.
//
// Equal runs have equal hashes; this hash is part of the run's identity. Groups write the log, and reports read it. Not
// thread safe. Reading does not block. References to events are valid until the log records the next call.
class EventLog {
 public:
  struct Group {
    std::string name;
    std::string description;
    std::vector<int> ranks;
  };
  // The arguments that a rank passed to the new_group() that made group `pg_id`, if the first caller passed other ones.
  struct OtherCreation {
    std::uint32_t pg_id = 0;
    int rank = -1;
    Group passed;
  };

  explicit EventLog(EventLogOptions options);

  // The events of one rank that the log still keeps, oldest first.
  std::vector<Event> of_rank(int rank) const;

  // All events that the log still keeps, in the order of the calls.
  std::vector<Event> kept() const;

  // The rank's last call, and the last one that completed. Null if there is none or if the log no longer keeps it.
  const Event* last(int rank) const;
  const Event* last_completed(int rank) const;

  std::uint64_t size() const noexcept { return records_; }
  std::uint64_t hash() const noexcept { return hash_.value(); }

  const Signature& signature(const Event& event) const { return signatures_.at(event.signature); }
  const Group& group(const Event& event) const { return groups_.at(event.pg_id); }
  const std::vector<Group>& groups() const noexcept { return groups_; }
  const std::vector<OtherCreation>& other_creations() const noexcept { return other_creations_; }

  // Where the call was made. Empty unless call sites were captured.
  const exec::CallSite& call_site(const Event& event) const { return call_sites_.at(event.call_site); }

  // All captured call sites; the first is empty.
  const std::vector<exec::CallSite>& call_sites() const noexcept { return call_sites_; }

  // The ranks' own work, such as the backward of a compiled graph. If the log keeps all events, it keeps all spans.
  // Otherwise it keeps the last spans of the world: last_of_each_rank times the number of ranks, whichever ranks they
  // belong to.
  const SpanLog& spans() const noexcept { return spans_; }
  SpanLog& spans() noexcept { return spans_; }

  // The call with this Event::record_id. Null if no call has it, or if the log does not keep all events.
  const Event* find(std::uint64_t record_id) const {
    return options_.keep_all && record_id < all_.size() ? &all_[record_id] : nullptr;
  }

  // Text that a report adds to this call. Empty for most calls.
  const std::string& note(const Event& event) const {
    static const std::string none;
    const auto found = notes_.find(event.record_id);
    return found != notes_.end() ? found->second : none;
  }

  // `allreduce #7 on group "world"`, or with a label: `allreduce #7 of "fc1.weight" on group "world"`.
  std::string title(const Event& event) const;
  FlightRecord flight_record(const Event& event) const;

 private:
  friend class EventWriter;

  template <class Matters>
  const Event* last_that(int rank, const Matters& matters) const;

  // How many calls a rank has made.
  struct Made {
    std::size_t events = 0;
    std::size_t next_round = 0;  // the round of its next event: `events` modulo the number of rounds
  };

  EventLogOptions options_;
  SpanLog spans_;
  // Used unless all events are kept: a rank's n-th event is in round n modulo last_of_each_rank, at the rank's index.
  // Thus calls that ranks make together are close in memory, and rounds that no rank has reached take no memory.
  std::vector<std::vector<Event>> rounds_;
  std::vector<Made> made_;  // by rank
  std::deque<Event> all_;
  std::vector<Signature> signatures_;
  std::unordered_map<std::uint64_t, std::uint32_t> signature_ids_;
  std::vector<Group> groups_;
  std::vector<OtherCreation> other_creations_;
  std::vector<exec::CallSite> call_sites_{{}};  // by Event::call_site
  std::map<exec::CallSite, std::uint32_t> call_site_ids_;
  std::map<std::uint64_t, std::string> notes_;  // by record_id
  std::uint64_t records_ = 0;
  WordHash hash_{0x4556454E'544C4F47ull};
};

}  // namespace rehearse::comm
