// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <rehearse/comm/event_log.h>
#include <rehearse_internal/comm/fabric.h>
#include <rehearse_internal/comm/group_identity.h>
#include <rehearse_internal/comm/mismatch.h>
#include <rehearse_internal/comm/pending.h>
#include <rehearse_internal/exec/clock.h>
#include <rehearse_internal/exec/executor.h>

#include "comm/agree/vote.h"
#include "comm/record/call_recorder.h"
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

// Collects the mismatches of a world. The first one ends the world.
class Mismatches {
 public:
  Mismatches(exec::RankExecutor& executor, CheckerSink& sink) : executor_(executor), sink_(sink) {}

  // False if another mismatch is already pending.
  bool begin_mismatch() noexcept { return first_.begin(); }

  void report(const Mismatch& mismatch) { sink_.on_mismatch(mismatch); }

  // Reports the mismatch, stops the world and throws MismatchError.
  [[noreturn]] void fail(const Mismatch& mismatch);

 private:
  exec::RankExecutor& executor_;
  CheckerSink& sink_;
  FirstMismatch first_;
};

// How ranks use their groups, for reports: texts, and the ranks that each text concerns.
class Habits {
 public:
  using Lines = std::map<std::string, std::set<int>>;

  // A rank has made a call on a group although it knows that an earlier call on it has timed out.
  void went_on(int rank, const std::string& group, const std::string& call);

  // The rank's program has aborted its call, for which other ranks may wait.
  void aborted(int rank, const std::string& call);

  // A rank makes collectives of a group that several threads use. `race`: the threads do not take turns.
  void shares_with_threads(int rank, const std::string& group, bool race);

  // A message whose ends have different labels, as stages of a pipeline may. Keeps the first of each group.
  void labels_differ(int sender, const std::string& group, const std::string& send, const std::string& recv);

  // Reports show remarks() always, and notes() if the run failed.
  const Lines& remarks() const noexcept { return remarks_; }
  const Lines& notes() const noexcept { return notes_; }
  // Groups whose threads do not take turns: on them, the order of a rank's calls says nothing about its program.
  const std::set<std::string>& raced_groups() const noexcept { return raced_groups_; }

 private:
  Lines remarks_;
  Lines notes_;
  std::set<std::string> raced_groups_;
  std::set<std::string> groups_with_two_labels_;
};

// Objects that the matchers of all groups of a world share. They must outlive the matchers.
struct Services {
  exec::RankExecutor& executor;
  exec::Clock& clock;
  Fabric& fabric;
  Mismatches& mismatches;
  ShortMessageLog& short_messages;
  Habits& habits;

  VirtualTime now() const noexcept { return clock.now(); }
  VirtualTime limit_now() const noexcept { return timers().limit_now(now()); }
  exec::TimerQueue& timers() const noexcept { return executor.timers(); }
};

// Objects that the matchers of one group share.
struct MatcherContext {
  const GroupIdentity& group;
  CallRecorder& recorder;
  Services& services;
};

}  // namespace rehearse::comm
