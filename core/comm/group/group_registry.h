// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <c10/util/intrusive_ptr.h>

#include <rehearse_internal/comm/pending.h>

#include "comm/matcher/pending_mismatch.h"
#include "group_state.h"

namespace rehearse::comm {

// All groups of a world: those that all its ranks make together, and those that are made from others.
class GroupRegistry {
 public:
  GroupRegistry(GroupWorld& world, std::size_t ranks) : world_(world), made_(ranks) {}

  // The calling rank's next new_group(); see Communicators::new_group().
  c10::intrusive_ptr<GroupState> create(std::span<const int> ranks, std::string_view name);

  // The calling rank's; see Communicators::new_local_group().
  c10::intrusive_ptr<GroupState> create_locally(std::span<const int> ranks, std::string_view name);

  // For split() and its like: the group of these ranks of the world under this name that `rank`, one of them, has not
  // yet taken. Its n-th such call takes the n-th such group, whatever else it does in between. `parent`: the group that
  // all of them are in; null: none.
  c10::intrusive_ptr<GroupState> derive(const char* call, const std::string& name, const std::vector<int>& ranks,
                                        int rank, const GroupIdentity* parent);

  // For RankBackend::companion(): the group of `group`'s ranks under this name, made when it is first asked for.
  c10::intrusive_ptr<GroupState> companion(const GroupState& group, const std::string& name);

  // See Communicators::lose() and begin_again().
  void lose(int rank, bool connections_break);
  void begin_again(int rank) noexcept;

  std::vector<PendingOperation> pending(int only_of) const;
  std::vector<PendingGroup> pending_groups() const;

  void close() noexcept;

 private:
  // How a group sees a rank of the world that has crashed.
  enum class Absence {
    down,  // it was down when the group was made: it may still come, once it has begun again
    lost,  // it has crashed since
  };
  using Absences = std::map<int, Absence>;
  static bool has_lost(const Absences& absent, int rank);

  // One new_group() of the world: made by the first rank that calls it.
  struct Creation {
    c10::intrusive_ptr<GroupState> group;
    CreationCalls calls;
    Absences absent;                                    // nobody misses them
    std::unique_ptr<PendingCreationMismatch> mismatch;  // null: all calls so far agree
  };

  // A group made from others, by its members alone.
  struct Derivation {
    c10::intrusive_ptr<GroupState> group;
    const char* call;
    std::vector<char> taken;  // by rank in the group
    exec::CallSite where;     // of the first call
    Absences absent;          // nobody misses them
  };

  c10::intrusive_ptr<GroupState> make(std::string name, std::vector<int> ranks, const GroupIdentity* parent);
  void check_name_is_free(std::string_view name, std::size_t groups) const;  // among the first `groups`
  void start_creation(std::span<const int> ranks, std::string_view name);
  void join(Creation& creation, std::span<const int> ranks, std::string_view name, int rank);
  [[noreturn]] void join_mismatch(Creation& creation, std::size_t index, int rank);
  exec::CallSite call_site() const;  // empty unless captured

  GroupWorld& world_;
  Absences down_;                        // those that have crashed and not begun again
  std::vector<std::size_t> made_;        // by rank: how many new_group() calls
  std::deque<Creation> creations_;       // in order; mismatches point into them
  std::vector<Derivation> derivations_;  // in order of each one's first rank
  // In order of their making: which group's, and under which name.
  std::vector<std::pair<const GroupState*, c10::intrusive_ptr<GroupState>>> companions_;
};

}  // namespace rehearse::comm
