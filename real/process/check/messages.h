// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include <rehearse_internal/comm/mismatch.h>
#include <rehearse_internal/comm/operation.h>
#include <rehearse_internal/comm/pending.h>
#include <rehearse_internal/exec/executor.h>

// The messages between the ranks of a job of processes and their coordinator. Ranks are ranks of the world unless
// stated otherwise. Times are by the coordinator's clock, or by the rank's own if a comment says so.
namespace rehearse::real {

// What the coordinator must know about a tensor to compare and describe a call.
struct TensorFacts {
  at::ScalarType dtype = at::ScalarType::Undefined;
  c10::DeviceType device = c10::kCPU;
  std::int64_t sparse_dims = 0;  // 0: the tensor is dense
  std::vector<std::int64_t> sizes, strides;
};

// A call in a form that can travel to another process, which compares it with the calls of other ranks.
struct CallFacts {
  c10d::OpType type = c10d::OpType::UNKNOWN;
  c10d::ReduceOp::RedOpType reduce_op = c10d::ReduceOp::UNUSED;
  std::vector<int> agreed;  // in the order of comm::kAgreedNumbers
  int peer = -1;
  int tag = 0;
  std::vector<TensorFacts> inputs, outputs;
  std::vector<std::int64_t> input_splits, output_splits;
  std::optional<double> factor;  // for a premultiplied sum
  std::vector<CallFacts> parts;
  std::chrono::milliseconds timeout{0};
  std::optional<std::string> label, payload;
};

CallFacts facts_of(const comm::Operation& call);

// Labels and payloads of calls. Equal texts become one object, which lives as long as the CallTexts.
class CallTexts {
 public:
  const std::string* label(const std::string& text) { return &*labels_.insert(text).first; }
  const comm::PayloadName* payload(const std::string& text);

 private:
  std::set<std::string> labels_;
  std::map<std::string, comm::PayloadName> payloads_;
};

// Rebuilds the call with tensors without data, so that core/comm can compare and describe it. Needs no device.
comm::Operation operation_of(const CallFacts& facts, CallTexts& texts);

template <class Archive>
void fields(Archive& archive, TensorFacts& tensor) {
  archive(tensor.dtype, tensor.device, tensor.sparse_dims, tensor.sizes, tensor.strides);
}

template <class Archive>
void fields(Archive& archive, CallFacts& call) {
  archive(call.type, call.reduce_op, call.agreed, call.peer, call.tag, call.inputs, call.outputs, call.input_splits,
          call.output_splits, call.factor, call.parts, call.timeout, call.label, call.payload);
}

// Messages to the coordinator.

// A heartbeat. The coordinator also sends it to the ranks.
struct StillAlive {};

// A rank has called new_group(), as a member or not; or a member has called split() or a similar function.
struct GroupMade {
  std::string call;          // "new_group", "split", ...
  std::uint64_t number = 0;  // counts the rank's calls of new_group(); for other calls, those for this name and ranks
  std::string given_name;    // the user's name for it
  std::string name;          // the group's own name
  std::string key;           // its name in messages, which no other group of the job has
  std::vector<int> ranks;
};

struct CallMade {
  std::string group;           // the group's key
  std::uint64_t sequence = 0;  // among the rank's collectives, or its sends and receives, on the group
  CallFacts call;
};

enum class FailureKind {
  plain,
  check,          // CheckError
  timeout,        // TimeoutError
  store,          // c10::DistStoreError
  lost,           // no exception: the process is gone, or was stopped for too long
  communication,  // a call to c10d has failed before; another rank's end may be the cause
};

struct RankEnded {
  exec::RankEnd end = exec::RankEnd::returned;
  FailureKind kind = FailureKind::plain;
  std::string what;
  VirtualTime at{};  // by the rank's clock; by the coordinator's if the coordinator decided that the rank has ended
};

struct Interrupted {};

// Rank 0 of a group no longer waits in a monitoredBarrier(). If rank 0 does not wait at all (a timeout of 0), it sends
// this message before the call.
struct BarrierGivenUp {
  std::string group;           // the group's key
  std::uint64_t sequence = 0;  // the barrier's number
  bool names_all = false;      // the error must name all missing ranks
  bool has_no_time = false;
};

using RankMessage = std::variant<StillAlive, GroupMade, CallMade, RankEnded, Interrupted, BarrierGivenUp>;

struct FromRank {
  int rank = -1;
  RankMessage body;
};

// Messages from the coordinator.

enum class Matched { group, collective, point_to_point };

// All ranks of the call are there and agree.
struct Go {
  Matched what = Matched::collective;
  std::string group;  // the group's key
  std::uint64_t sequence = 0;
  int source = -1;  // for a receive: the sender within the group
};

// A monitoredBarrier() fails, because rank 0 of its group gave it up.
struct BarrierFailed {
  std::string group;  // the group's key
  std::uint64_t sequence = 0;
  std::string name;          // the group's name
  std::string why;           // for the rank that receives this
  std::vector<int> ranks{};  // for CommError::ranks()
  bool is_timeout = false;   // true: throw a TimeoutError; false: a CommError
};

// The world ends: calls fail from here on.
struct Stop {
  std::string why;
  // What the receiving rank waits for, as in JobOutcome::Blocked. The rank may need this before it gets the outcome.
  std::string waits_on{};
  std::vector<int> waits_for{};
};

// How a job ended, for the reports of all its ranks.
struct JobOutcome {
  struct Failure {
    int rank = -1;
    RankEnded end;
    std::string gave_up;  // for a timeout: the call; the next field has the missing ranks
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
  std::vector<VirtualTime> ended_at;  // RankEnded::at; for a rank that has not ended: when the coordinator gave it up
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
  archive(message.rank, message.body);
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

}  // namespace rehearse::real

namespace rehearse::comm {

// Leaves out call sites, because they are addresses of one process.
template <class Archive>
void fields(Archive& archive, Mismatch::Side& side) {
  archive(side.rank, side.fingerprint, side.alike);
}
template <class Archive>
void fields(Archive& archive, Mismatch::Field& field) {
  archive(field.name, field.first, field.second, field.others);
}
template <class Archive>
void fields(Archive& archive, Mismatch& mismatch) {
  archive(mismatch.kind, mismatch.group, mismatch.sequence, mismatch.has_majority, mismatch.first, mismatch.second,
          mismatch.others, mismatch.fields);
}
template <class Archive>
void fields(Archive& archive, PendingOperation& call) {
  archive(call.rank, call.group, call.sequence, call.call, call.description, call.waits_for, call.timed_out,
          call.gave_up, call.record_id, call.receiver, call.is_send, call.sent_as);
}
template <class Archive>
void fields(Archive& archive, ShortMessages& messages) {
  archive(messages.call, messages.elements, messages.received, messages.ranks, messages.times);
}
template <class Archive>
void fields(Archive& archive, PendingGroup& group) {
  archive(group.call, group.name, group.called_by, group.missing);
}

}  // namespace rehearse::comm
