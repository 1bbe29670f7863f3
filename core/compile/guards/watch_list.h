// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <rehearse/compile/guard_failure.h>
#include <rehearse/compile/watch.h>
#include <rehearse_internal/operators/group_use.h>

namespace rehearse::compiler {

// What a capture was told to watch.
class WatchList {
 public:
  void add(std::shared_ptr<const Watched> watched) { watched_.push_back(std::move(watched)); }
  bool holds(GuardFailure* failure = nullptr) const {
    for (const auto& watched : watched_) {
      if (watched->holds()) continue;
      if (failure) *failure = watched->failure();
      return false;
    }
    return true;
  }

 private:
  std::vector<std::shared_ptr<const Watched>> watched_;
};

// While it lives, what watch() is called with in this fiber goes into `list`. `frame`: an address in the frame of the
// compiled call, above which addresses on the stack are the caller's.
//
// Hears of the process groups that the code uses, too, and refuses those that nothing guards: a group of which nobody
// looks whether it is still the same one would send a later call to other ranks.
class WatchScope final : public operators::GroupUse {
 public:
  // `function`: where the function object lies, if its code cannot change it: what it keeps by value stays as it is.
  WatchScope(WatchList& list, const void* frame, std::span<const std::byte> function);
  ~WatchScope();
  WatchScope(const WatchScope&) = delete;
  WatchScope& operator=(const WatchScope&) = delete;

  void add(const void* address, std::shared_ptr<const Watched> watched);

  // An argument of the call is this group.
  void add_guarded(c10d::ProcessGroup* group) { guarded_.insert(group); }
  // All that are guarded in one way or another.
  const std::set<c10d::ProcessGroup*>& guarded() const noexcept { return guarded_; }

  void used(const void* place, c10d::ProcessGroup* group) override;
  void derived(c10d::ProcessGroup* group) override { guarded_.insert(group); }
  void used_world(const Group& world) override;

 private:
  bool is_in_function(const void* place) const noexcept;

  WatchScope* before_;
  operators::GroupUse* use_before_;
  WatchList& list_;
  const void* frame_;
  std::span<const std::byte> function_;
  std::set<c10d::ProcessGroup*> guarded_;  // asked for members only
  bool watches_world_ = false;
};

// "the group "tp"", for people.
std::string title_of_group(c10d::ProcessGroup* group);

// What to write instead of using a group that nothing guards.
inline constexpr const char* kGuardTheGroup =
    "Make the group an argument, or write rehearse::watch(group); for the group of all ranks write "
    "rehearse::world_group().";

}  // namespace rehearse::compiler
