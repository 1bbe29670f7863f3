// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
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

// All groups of a world: those that all its ranks make together, those that only their members make, and companions
// (RankBackend::companion()).
class GroupRegistry {
 public:
  GroupRegistry(GroupWorld& world, std::size_t ranks) : world_(world), made_(ranks) {}

  // The calling rank's next new_group(); see Communicators::new_group().
  c10::intrusive_ptr<GroupState> create(std::span<const int> ranks, std::string_view name);

  // The calling rank's next local group; see Communicators::new_local_group().
  c10::intrusive_ptr<GroupState> create_locally(std::span<const int> ranks, std::string_view name);

  // For split() and similar calls by `rank`: returns the next group that has these ranks of the world and this name.
  // The rank's n-th such call gets the n-th such group, whatever calls it makes in between. A restarted rank gets only
  // groups that were made after its crash. `call`: "split" and so on, for reports. `parent`: the group that contains
  // all of these ranks; null: none.
  c10::intrusive_ptr<GroupState> derive(const char* call, const std::string& name, const std::vector<int>& ranks,
                                        int rank, const GroupIdentity* parent);

  // For RankBackend::companion(): the group of `group`'s ranks with this name, made at the first request.
  c10::intrusive_ptr<GroupState> companion(const GroupState& group, const std::string& name);

  // See Communicators::lose() and begin_again().
  void lose(int rank, bool connections_break);
  void begin_again(int rank) noexcept;

  std::vector<PendingOperation> pending(int only_of) const;
  std::vector<PendingGroup> pending_groups() const;
  std::vector<UnusedGroups> unused_groups() const;

  void close() noexcept;

 private:
  // The state of a crashed rank of the world as a group sees it.
  enum class Absence {
    down,  // it was down when the group was made, and may still join after its restart
    lost,  // it has crashed since the group was made
  };
  using Absences = std::map<int, Absence>;
  static bool has_lost(const Absences& absent, int rank);

  // One new_group() of the world. The first rank that calls it makes the group.
  struct Creation {
    c10::intrusive_ptr<GroupState> group;
    CreationCalls calls;
    Absences absent;                                    // these ranks do not count as missing
    std::unique_ptr<PendingCreationMismatch> mismatch;  // null: all calls so far agree
    exec::CallSite where;                               // the first call's place
  };

  // A group that only its members make: by split(), merge(), shrink() or new_local_group().
  struct Derivation {
    c10::intrusive_ptr<GroupState> group;
    const char* call;
    std::vector<char> taken;  // by rank in the group
    exec::CallSite where;     // the first call's place
    Absences absent;          // these ranks do not count as missing
  };

  c10::intrusive_ptr<GroupState> make(std::string name, std::string description, std::vector<int> ranks,
                                      const GroupIdentity* parent);
  // Looks only at the groups of the first `groups` new_group() calls.
  void check_name_is_free(std::string_view name, std::size_t groups) const;
  std::size_t groups_named(const std::string& name) const;
  void start_creation(std::span<const int> ranks, std::string_view name);
  void join(Creation& creation, std::span<const int> ranks, std::string_view name, int rank);
  [[noreturn]] void join_mismatch(Creation& creation, std::size_t index, int rank);
  exec::CallSite call_site() const;  // empty unless call sites are captured
  // Whether a rank made a call on the group, or a group of some of its ranks.
  bool is_used(const GroupState& group) const;

  GroupWorld& world_;
  Absences down_;                        // ranks that have crashed and not been restarted
  std::set<int> begun_again_;            // ranks that have been restarted
  std::vector<std::size_t> made_;        // number of new_group() calls, by rank
  std::deque<Creation> creations_;       // in order; mismatches refer to entries
  std::vector<Derivation> derivations_;  // in the order of their first calls
  std::set<const GroupIdentity*> parents_;
  // Pairs of a group and one of its companions, in the order in which the companions were made.
  std::vector<std::pair<const GroupState*, c10::intrusive_ptr<GroupState>>> companions_;
};

}  // namespace rehearse::comm
