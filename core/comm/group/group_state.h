// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <rehearse/exec/wait_queue.h>
#include <rehearse_internal/comm/pending.h>

#include "comm/matcher/collective_matcher.h"
#include "comm/matcher/point_to_point_matcher.h"
#include "comm/work/rank_work.h"
#include "comm/work/work_owner.h"

namespace rehearse::comm {

class GroupState;

// One rank's state in a group besides its calls: its errors, its completion hook, and whether it still accepts calls.
// Made on demand. The group owns it.
class GroupMember {
 public:
  using Hook = std::function<void(std::shared_ptr<c10d::WorkInfo>)>;

  GroupMember(GroupState& group, int rank) : group_(group), rank_(rank) {}

  // Keeps only the first error.
  void note(c10d::ErrorType error) noexcept;
  c10d::ErrorType error() const noexcept { return error_; }

  // Fails the rank's operations in flight with CommError, and refuses later calls.
  void abort();

  // Waits for the rank's operations in flight, and refuses later calls.
  void shut_down();

  // Throws CommError after abort() or shut_down().
  void check_open() const;

  // Blocks until the rank's calls have ended and its hook has run for each call that succeeded. Throws TimeoutError if
  // a call exceeds its time limit.
  void wait_for_pending_works();

  bool has_hook() const noexcept { return hook_ != nullptr; }
  void set_hook(Hook hook) { hook_ = std::move(hook); }

  // Runs the hook, if set, on a helper fiber of the rank.
  void completed(const RankWork& work);

 private:
  GroupState& group_;
  const int rank_;
  c10d::ErrorType error_ = c10d::ErrorType::SUCCESS;
  const char* refusal_ = nullptr;
  Hook hook_;
  std::size_t hooks_to_run_ = 0;
  exec::WaitQueue hooks_done_;
};

class GroupWorld;

// The state that the ranks of a process group share. Back ends and works keep it alive. After the end of the world it
// is closed, and then only its identity is valid.
class GroupState final : public WorkOwner {
 public:
  GroupState(GroupWorld& world, GroupIdentity identity);
  ~GroupState() override;

  int size() const noexcept { return identity().size(); }

  // The name under which c10d finds the group among a rank's groups. It is the group's own name, with one exception:
  // calls that only the members make (split(), new_local_group()) may make several groups with one name. c10d finds the
  // later groups as "name#2", "name#3" and so on.
  const std::string& registered_name() const noexcept { return registered_name_; }
  void register_as(std::string name) { registered_name_ = std::move(name); }

  // Throws CommError after the end of the world.
  GroupWorld& world() const;

  // Throws CommError after the end of the world, or if the calling fiber belongs to another rank than `rank`.
  void check_caller(int rank) const;

  // Has the Fabric prepare the call, unless the world is ending. Throws the fabric's error. Throws CommError after the
  // end of the world, if the calling fiber does not belong to the work's rank, or if the work's rank has aborted the
  // group or shut it down.
  void check(RankWork& work) const;

  // Checks, records and matches the call. Throws what check() and the interceptors throw, and MismatchError or
  // RankAborted if the ranks' calls do not match. If an interceptor skips the call, only completes the work. While the
  // world ends, only checks the call: the work then never completes, and waiting for it throws RankAborted.
  void submit(c10::intrusive_ptr<RankWork> work);

  // The state of `rank` in the group; null: none has been needed yet.
  GroupMember* find_member(int rank) noexcept {
    if (members_.empty()) return nullptr;
    const auto found = members_.find(rank);
    return found != members_.end() ? &found->second : nullptr;
  }
  GroupMember& member(int rank) { return members_.try_emplace(rank, *this, rank).first->second; }

  // The rank's incomplete calls, collectives first, each kind oldest first.
  Works in_flight(int rank) const;

  // Returns a record_id. The rank knows that its calls before that event have ended: all calls or, if `for_messages` is
  // false, the collectives. It knows this because it has seen the end of a later call, or has waited for all calls
  // (note_all_known()). A collective ends after all earlier collectives. A barrier also counts for earlier messages,
  // although it does not wait for them, because most programs wait for one side of a message before the barrier. The
  // monitored barrier is exempt from this order (see CollectiveMatcher), so its end says nothing about earlier calls.
  std::uint64_t known_until(int rank, bool for_messages) const noexcept {
    const auto& known = known_[static_cast<std::size_t>(rank)];
    return for_messages ? known.all : std::max(known.all, known.collectives);
  }

  // Whether a rank has made a call.
  bool has_calls() const noexcept;
  CollectiveMatcher& collectives() noexcept { return collectives_; }
  PointToPointMatcher& point_to_point() noexcept { return point_to_point_; }

  // `only_of`: a rank of the world; negative: all ranks.
  void list_pending(std::vector<PendingOperation>& pending, int only_of) const;

  // See Communicators::lose(); `rank` is a rank in the group.
  void lose(int rank, bool connections_break);

  // Releases all operations in flight. Their works stay incomplete.
  void close() noexcept;

  bool closed() const noexcept override { return world_ == nullptr; }
  exec::RankExecutor& executor() const override;
  void note_error(int rank, c10d::ErrorType error) override { member(rank).note(error); }
  void note_failure_known(int rank) noexcept override;
  void note_aborted(const RankWork& work) override;
  bool is_left_behind(const RankWork& work, const std::vector<int>& waits_for) const override;
  void note_known(const RankWork& work) noexcept override;
  // Call this when `rank` knows that all of its calls so far have ended.
  void note_all_known(int rank) noexcept;
  void on_end(RankWork& work) override;
  void on_known(const RankWork& work) noexcept override;
  bool is_unchanged(const RankWork& work) override;
  void on_released(const RankWork& work) noexcept override;
  void on_unasked(const RankWork& work) override;

 private:
  bool admitted(RankWork& work) const;
  void note_use(RankWork& work);
  void note_thread(const RankWork& work);

  std::string registered_name_ = identity().name;
  GroupWorld* world_;
  // A rank knows that its calls before these record_ids have ended.
  struct KnownUntil {
    std::uint64_t all = 0;          // for all calls: from the last barrier() that ended, or from note_all_known()
    std::uint64_t collectives = 0;  // for collectives: from the last other collective that ended
  };

  bool any_calls_ = false;          // a rank has made a collective
  bool several_threads_ = false;    // collectives come from fibers with several numbers (RankWork::thread())
  std::uint16_t first_thread_ = 0;  // RankWork::thread() of the first collective
  std::map<int, std::set<std::uint16_t>> threads_;  // of the ranks that called since several_threads_
  std::map<int, std::string> timed_out_;            // by rank: the first of its calls that it knows to have timed out
  std::vector<KnownUntil> known_;                   // by rank
  std::set<int> lost_;                              // ranks of the world that are no longer members
  std::map<int, GroupMember> members_;              // by rank; most ranks never need one
  CallRecorder recorder_;
  CollectiveMatcher collectives_;
  PointToPointMatcher point_to_point_;
};

}  // namespace rehearse::comm
