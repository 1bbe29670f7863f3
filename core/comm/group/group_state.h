// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <c10/util/intrusive_ptr.h>

#include <rehearse/comm/communicators.h>
#include <rehearse/comm/rank_work.h>

#include "comm/matcher/collective_matcher.h"
#include "comm/matcher/point_to_point_matcher.h"
#include "group_member.h"

namespace rehearse::comm {

// What the ranks of one process group share. Kept alive by its back ends and works; when the world is over it is
// closed, and from then on only answers who it was.
class GroupState final : public c10::intrusive_ptr_target {
 public:
  // `ranks`: of the world, by rank in the group.
  GroupState(Communicators& world, std::uint32_t id, std::string name, std::vector<int> ranks);
  ~GroupState() override;

  const std::string& name() const noexcept { return name_; }
  std::uint32_t id() const noexcept { return id_; }
  const std::vector<int>& ranks() const noexcept { return ranks_; }
  int size() const noexcept { return static_cast<int>(ranks_.size()); }
  int global_rank(int rank) const noexcept { return ranks_[static_cast<std::size_t>(rank)]; }

  bool closed() const noexcept { return world_ == nullptr; }

  // Throws CommError when the world is over.
  Communicators& world() const;

  // Throws CommError when the world is over, or when the calling fiber belongs to another rank than `rank`.
  void check_caller(int rank) const;

  // Throws what the Fabric has against the call, and CommError when the world is over, when the calling fiber belongs
  // to another rank, or when that rank has aborted the group or shut it down.
  void check(const RankWork& work) const;

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

  // What the rank called before this event, it has waited for: the event of a barrier.
  void note_barrier(int rank, std::uint64_t record_id) noexcept {
    barriers_[static_cast<std::size_t>(rank)] = record_id;
  }
  std::uint64_t last_barrier(int rank) const noexcept { return barriers_[static_cast<std::size_t>(rank)]; }

  CollectiveMatcher& collectives() noexcept { return collectives_; }
  PointToPointMatcher& point_to_point() noexcept { return point_to_point_; }

  // `only_of`: of this rank (of the world) only; negative: of all.
  void list_pending(std::vector<PendingOperation>& pending, int only_of) const;

  // Lets go of everything in flight. Works stay as they are.
  void close() noexcept;

  // For the matchers: writes the call into the event log.
  Event& record(RankWork& work, std::uint64_t sequence, std::uint32_t signature);
  exec::CallSite call_site(const RankWork& work) const;  // empty unless captured
  Mismatch::Side side_of(const RankWork& work, exec::CallSite where) const;

 private:
  Communicators* world_;
  const std::uint32_t id_;
  const std::string name_;
  const std::vector<int> ranks_;
  std::vector<std::uint32_t> calls_;     // by rank: collectives, sends and receives so far
  std::vector<std::uint64_t> barriers_;  // by rank
  std::map<int, GroupMember> members_;   // by rank; most ranks never need one
  CollectiveMatcher collectives_;
  PointToPointMatcher point_to_point_;
};

// `allreduce #7 on group "world"`, `send #1 to rank 3 with tag 5 on group "world"`.
std::string title_of(const RankWork& work);

}  // namespace rehearse::comm
