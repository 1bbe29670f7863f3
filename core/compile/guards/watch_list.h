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

// The values that captured code watches.
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

  // The values at the capture.
  std::string text() const {
    std::string text;
    for (const auto& watched : watched_) text += watched->failure().expected + "\n";
    return text;
  }

 private:
  std::vector<std::shared_ptr<const Watched>> watched_;
};

// While it lives, watch() in this fiber adds to `list`. `frame`: an address in the frame of the compiled call; stack
// addresses above it belong to the caller.
//
// A WatchScope also observes the process groups that the code uses. If the code uses a group that no guard covers, the
// capture ends or, if it cannot end there, the code gets a refusal. Otherwise a later call might communicate with the
// wrong ranks, because the group may have changed.
class WatchScope final : public operators::GroupUse {
 public:
  // `function`: the memory of the function object, if calls cannot change the object. Values in it are constant.
  WatchScope(WatchList& list, const void* frame, std::span<const std::byte> function);
  ~WatchScope();
  WatchScope(const WatchScope&) = delete;
  WatchScope& operator=(const WatchScope&) = delete;

  void add(const void* address, std::shared_ptr<const Watched> watched);

  // Notes a group that is an argument of the call.
  void add_guarded(c10d::ProcessGroup* group) { guarded_.insert(group); }
  const std::set<c10d::ProcessGroup*>& guarded() const noexcept { return guarded_; }

  void used(const void* address, c10d::ProcessGroup* group) override;
  void derived(c10d::ProcessGroup* group) override { guarded_.insert(group); }
  void used_world(const Group& world) override;

 private:
  bool is_in_function(const void* address) const noexcept;
  bool is_kept_by_function(const c10d::ProcessGroup* group) const noexcept;

  WatchScope* before_;
  operators::GroupUse* use_before_;
  WatchList& list_;
  const void* frame_;
  std::span<const std::byte> function_;
  std::set<c10d::ProcessGroup*> guarded_;  // used for membership tests only
  bool watches_world_ = false;
};

// The name of a group in messages, such as `the group "tp"`.
std::string title_of_group(c10d::ProcessGroup* group);

// The cure for using a group that no guard covers.
inline constexpr const char* kGuardTheGroup =
    "Make the group an argument, or write rehearse::watch(group); for the group of all ranks write "
    "rehearse::world_group().";

}  // namespace rehearse::compiler
