// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include <rehearse_internal/comm/pending.h>

#include "comm/matcher/collective_matcher.h"
#include "comm/matcher/point_to_point_matcher.h"
#include "comm/work/work_owner.h"
#include "group_member.h"

namespace rehearse::comm {

class GroupWorld;

// What the ranks of one process group share. Kept alive by its back ends and works; when the world is over it is
// closed, and from then on only answers who it was.
class GroupState final : public WorkOwner {
 public:
  GroupState(GroupWorld& world, GroupIdentity identity);
  ~GroupState() override;

  int size() const noexcept { return identity().size(); }

  // By which c10d finds it among the groups of a rank: its name, unless another one had that before.
  const std::string& registered_name() const noexcept { return registered_name_; }
  void register_as(std::string name) { registered_name_ = std::move(name); }

  // Throws CommError when the world is over.
  GroupWorld& world() const;

  // Throws CommError when the world is over, or when the calling fiber belongs to another rank than `rank`.
  void check_caller(int rank) const;

  // Has the Fabric prepare the call. Throws what that has against it, and CommError when the world is over, when the
  // calling fiber belongs to another rank, or when that rank has aborted the group or shut it down.
  void check(RankWork& work) const;

  // Checks, records and matches the call. Throws what check() does, and MismatchError. Does nothing while the world
  // ends: the work then never completes, and waiting for it throws RankAborted.
  void submit(c10::intrusive_ptr<RankWork> work);

  // What `rank` has asked of its end of the group; null: nothing yet.
  GroupMember* find_member(int rank) noexcept {
    if (members_.empty()) return nullptr;
    const auto found = members_.find(rank);
    return found != members_.end() ? &found->second : nullptr;
  }
  GroupMember& member(int rank) { return members_.try_emplace(rank, *this, rank).first->second; }

  // The rank's calls that are not complete, collectives first, each kind oldest first.
  Works in_flight(int rank) const;

  // What the rank called before the event with this record_id is over, and the rank may know it: it has seen the end of
  // a later call. A barrier comes behind everything, any other collective behind the collectives before it.
  std::uint64_t known_until(int rank, bool for_messages) const noexcept {
    const auto& known = known_[static_cast<std::size_t>(rank)];
    return for_messages ? known.all : std::max(known.all, known.collectives);
  }

  CollectiveMatcher& collectives() noexcept { return collectives_; }
  PointToPointMatcher& point_to_point() noexcept { return point_to_point_; }

  // `only_of`: of this rank (of the world) only; negative: of all.
  void list_pending(std::vector<PendingOperation>& pending, int only_of) const;

  // See Communicators::lose(); `rank` within the group.
  void lose(int rank, bool connections_break);

  // Lets go of everything in flight. Works stay as they are.
  void close() noexcept;

  bool closed() const noexcept override { return world_ == nullptr; }
  exec::RankExecutor& executor() const override;
  void note_error(int rank, c10d::ErrorType error) override { member(rank).note(error); }
  void note_failure_known(int rank) noexcept override;
  bool is_left_behind(const RankWork& work, const std::vector<int>& waits_for) const override;
  void note_known(const RankWork& work) noexcept override;
  // `rank` has waited for all that it has called so far.
  void note_all_known(int rank) noexcept;
  void on_end(RankWork& work) override;
  void on_known(const RankWork& work) noexcept override;
  bool is_unchanged(const RankWork& work) override;
  void on_released(const RankWork& work) noexcept override;
  void on_unasked(const RankWork& work) override;

 private:
  bool admitted(RankWork& work) const;

  std::string registered_name_ = identity().name;
  GroupWorld* world_;
  struct KnownUntil {
    std::uint64_t all = 0;          // Event::record_id of the last barrier
    std::uint64_t collectives = 0;  // and of the last other collective
  };
  void note_use(const RankWork& work);

  bool main_calls_ = false;               // the main fiber of a rank has made collectives
  bool thread_calls_ = false;             // a thread of a rank has
  std::map<int, std::string> timed_out_;  // by rank: the first of its calls of whose timeout it knows
  std::vector<KnownUntil> known_;         // by rank
  std::set<int> lost_;                    // ranks of the world that are no members any more
  std::map<int, GroupMember> members_;    // by rank; most ranks never need one
  CallRecorder recorder_;
  CollectiveMatcher collectives_;
  PointToPointMatcher point_to_point_;
};

}  // namespace rehearse::comm
