// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include <rehearse_internal/comm/mismatch.h>
#include <rehearse_internal/comm/pending.h>
#include <rehearse_internal/exec/executor.h>

#include "process/check/archive.h"
#include "process/check/call_facts.h"

// What the ranks of a job of processes tell their coordinator, and what it tells them. Ranks are ranks of the world
// unless said otherwise; times are those of the coordinator's clock, or of the rank's own where it says so.
namespace rehearse::real {

// To the coordinator.

struct StillAlive {};

// A new_group(), also by ranks that are no members of it; or split() and its like, by members.
struct GroupMade {
  std::string call;          // "new_group", "split", ...
  std::uint64_t number = 0;  // which new_group of the rank
  std::string given_name;    // as the user called it
  std::string name;          // of its own
  std::string key;           // by which messages name it: the name, where no other group has it
  std::vector<int> ranks;
};

struct CallMade {
  std::string group;           // its key
  std::uint64_t sequence = 0;  // among the rank's collectives on the group, or among its sends and receives
  CallFacts call;
};

// What an exception was.
enum class FailureKind {
  plain,
  check,          // CheckError
  timeout,        // TimeoutError
  store,          // c10::DistStoreError
  lost,           // there is none: the process is gone
  communication,  // out of a call to c10d: another rank's end may be behind it
};

struct RankEnded {
  exec::RankEnd end = exec::RankEnd::returned;
  FailureKind kind = FailureKind::plain;
  std::string what;
  VirtualTime at{};  // of the rank's clock
};

struct Interrupted {};

// Rank 0 of a group no longer waits in a monitoredBarrier(). Told before its call, if that has no time at all.
struct BarrierGivenUp {
  std::string group;           // its key
  std::uint64_t sequence = 0;  // of the barrier
  bool names_all = false;      // of the ranks that are missing
  bool has_no_time = false;
};

using RankMessage = std::variant<StillAlive, GroupMade, CallMade, RankEnded, Interrupted, BarrierGivenUp>;

struct FromRank {
  int rank = -1;
  RankMessage told;
};

// From the coordinator.

enum class Matched { group, collective, point_to_point };

// All ranks that belong to it are there, and agree.
struct Go {
  Matched what = Matched::collective;
  std::string group;  // its key
  std::uint64_t sequence = 0;
  int source = -1;  // of a receive: within the group
};

// A monitoredBarrier() fails: rank 0 of its group has given it up.
struct BarrierFailed {
  std::string group;  // its key
  std::uint64_t sequence = 0;
  std::string name;          // the group's
  std::string why;           // for the rank that is told
  std::vector<int> ranks{};  // as CommError::ranks()
  bool is_timeout = false;   // a TimeoutError; else a CommError
};

// The world ends: calls fail from here on.
struct Stop {
  std::string why;
  // Where the receiving rank was, as in JobOutcome::Blocked. It may have to be known before the outcome is.
  std::string waits_on{};
  std::vector<int> waits_for{};
};

// How a job ended, for the reports of all its ranks.
struct JobOutcome {
  struct Failure {
    int rank = -1;
    RankEnded end;
    std::string gave_up;  // of a timeout: the call, and
    std::vector<int> waits_for;
  };
  struct Blocked {
    int rank = -1;
    bool was_blocked = false;
    std::string waits_on, call;
    std::vector<int> waits_for;
  };

  exec::Ending ending = exec::Ending::all_returned;
  std::string why;
  std::vector<exec::RankEnd> ranks;
  std::vector<VirtualTime> ended_at;
  std::vector<Failure> failures;
  std::vector<Blocked> blocked;
  std::vector<comm::Mismatch> mismatches;
  std::vector<comm::PendingOperation> pending;
  std::vector<comm::PendingGroup> pending_groups;
  std::vector<comm::ShortMessages> short_messages;
};

// All ranks have ended, or are given up.
struct Over {
  JobOutcome job_outcome;
};

using ToRank = std::variant<StillAlive, Go, Stop, Over, BarrierFailed>;

template <class Archive>
void fields(Archive&, StillAlive&) {}
template <class Archive>
void fields(Archive&, Interrupted&) {}
template <class Archive>
void fields(Archive& archive, GroupMade& group) {
  archive(group.call, group.number, group.given_name, group.name, group.key, group.ranks);
}
template <class Archive>
void fields(Archive& archive, CallMade& made) {
  archive(made.group, made.sequence, made.call);
}
template <class Archive>
void fields(Archive& archive, RankEnded& ended) {
  archive(ended.end, ended.kind, ended.what, ended.at);
}
template <class Archive>
void fields(Archive& archive, BarrierGivenUp& given_up) {
  archive(given_up.group, given_up.sequence, given_up.names_all, given_up.has_no_time);
}
template <class Archive>
void fields(Archive& archive, FromRank& message) {
  archive(message.rank, message.told);
}
template <class Archive>
void fields(Archive& archive, Go& go) {
  archive(go.what, go.group, go.sequence, go.source);
}
template <class Archive>
void fields(Archive& archive, BarrierFailed& failed) {
  archive(failed.group, failed.sequence, failed.name, failed.why, failed.ranks, failed.is_timeout);
}
template <class Archive>
void fields(Archive& archive, Stop& stop) {
  archive(stop.why, stop.waits_on, stop.waits_for);
}
template <class Archive>
void fields(Archive& archive, Over& over) {
  archive(over.job_outcome);
}
template <class Archive>
void fields(Archive& archive, JobOutcome::Failure& failure) {
  archive(failure.rank, failure.end, failure.gave_up, failure.waits_for);
}
template <class Archive>
void fields(Archive& archive, JobOutcome::Blocked& blocked) {
  archive(blocked.rank, blocked.was_blocked, blocked.waits_on, blocked.call, blocked.waits_for);
}
template <class Archive>
void fields(Archive& archive, JobOutcome& job_outcome) {
  archive(job_outcome.ending, job_outcome.why, job_outcome.ranks, job_outcome.ended_at, job_outcome.failures,
          job_outcome.blocked, job_outcome.mismatches, job_outcome.pending, job_outcome.pending_groups,
          job_outcome.short_messages);
}
// Call sites are addresses of one process, and stay there.
template <class Archive>
void fields(Archive& archive, comm::Mismatch::Side& side) {
  archive(side.rank, side.fingerprint, side.alike);
}
template <class Archive>
void fields(Archive& archive, comm::Mismatch::Field& field) {
  archive(field.name, field.first, field.second, field.others);
}
template <class Archive>
void fields(Archive& archive, comm::Mismatch& mismatch) {
  archive(mismatch.kind, mismatch.group, mismatch.sequence, mismatch.has_majority, mismatch.first, mismatch.second,
          mismatch.others, mismatch.fields);
}
template <class Archive>
void fields(Archive& archive, comm::PendingOperation& call) {
  archive(call.rank, call.group, call.sequence, call.call, call.description, call.waits_for, call.timed_out,
          call.gave_up, call.record_id, call.receiver, call.is_send, call.sent_as);
}
template <class Archive>
void fields(Archive& archive, comm::ShortMessages& messages) {
  archive(messages.call, messages.elements, messages.received, messages.ranks, messages.times);
}
template <class Archive>
void fields(Archive& archive, comm::PendingGroup& group) {
  archive(group.call, group.name, group.called_by, group.missing);
}

}  // namespace rehearse::real
