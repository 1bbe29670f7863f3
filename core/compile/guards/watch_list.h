// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <rehearse/compile/guard_failure.h>
#include <rehearse/compile/watch.h>
#include <rehearse_internal/operators/group_use.h>

namespace rehearse::compiler {

// A pointer to a group or mesh inside the function object. A call may replace it: the object may have a mutable member.
struct KeptGroup {
  const void* pointer = nullptr;
  // These keep what the pointer names alive, so that its address stays unique.
  c10::intrusive_ptr<c10d::ProcessGroup> group = {};
  std::shared_ptr<const void> mesh = {};
};

// The values that captured code watches, and the groups that it finds in its function object.
class WatchList {
 public:
  void add(std::shared_ptr<const Watched> watched) { watched_.push_back(std::move(watched)); }
  void keep(std::size_t offset, const KeptGroup& kept) { kept_.try_emplace(offset, kept); }

  // `function`: the bytes of the function object in this call.
  bool holds_kept(std::span<const std::byte> function) const {
    return std::ranges::all_of(kept_, [&](const auto& kept) {
      return std::memcmp(function.data() + kept.first, &kept.second.pointer, sizeof kept.second.pointer) == 0;
    });
  }
  bool holds(std::span<const std::byte> function, GuardFailure* failure = nullptr) const {
    if (!holds_kept(function)) {
      if (failure) *failure = {"a group in the function object", "the group at the capture", "another one", ""};
      return false;
    }
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
  std::map<std::size_t, KeptGroup> kept_;  // by offset in the function object
};

// While it lives, watch() in this fiber adds to `list`. `frame`: an address in the frame of the compiled call; stack
// addresses above it belong to the caller.
//
// A WatchScope also observes the process groups that the code uses. If the code uses a group that no guard covers, the
// capture ends or, if it cannot end there, the code gets a refusal. Otherwise a later call might communicate with the
// wrong ranks, because the group may have changed.
class WatchScope final : public operators::GroupUse {
 public:
  // `frame`: the end of the compiled call's part of the stack, with the copies of its arguments. `function`: see
  // UserCode::function(). Groups in it get guards.
  WatchScope(WatchList& list, const void* frame, std::span<const std::byte> function);
  ~WatchScope();
  WatchScope(const WatchScope&) = delete;
  WatchScope& operator=(const WatchScope&) = delete;

  void add(const void* address, std::shared_ptr<const Watched> watched);
  // Whether the object is a local one of the compiled call, or a copy of an argument.
  bool ends_with_call(const void* object) const noexcept;

  // Notes a group that is an argument of the call.
  void add_guarded(c10d::ProcessGroup* group) { guarded_.insert(group); }
  const std::set<c10d::ProcessGroup*>& guarded() const noexcept { return guarded_; }

  // True if the code has replaced a group in the function object that it uses. No graph repeats that.
  bool has_replaced_group() const { return !list_.holds_kept(before_code_) || !list_.holds_kept(function_); }

  void used(const void* address, c10d::ProcessGroup* group, const std::shared_ptr<const void>& mesh) override;
  void derived(c10d::ProcessGroup* group) override { guarded_.insert(group); }
  void used_world(const Group& world) override;

 private:
  // Adds a guard for the object at `address`, and for all pointers to the group itself, such as a c10::intrusive_ptr,
  // as far as they are in the function object. Returns whether there are any.
  bool keep(const void* address, c10d::ProcessGroup* group, const std::shared_ptr<const void>& mesh);

  WatchScope* before_;
  operators::GroupUse* use_before_;
  WatchList& list_;
  const void* frame_;
  std::span<const std::byte> function_;
  const std::vector<std::byte> before_code_;  // `function_` before the code ran
  std::set<c10d::ProcessGroup*> guarded_;     // used for membership tests only
  bool watches_world_ = false;
};

// The name of a group in messages, such as `the group "tp"`.
std::string title_of_group(c10d::ProcessGroup* group);

// The cure for using a group that no guard covers.
inline constexpr const char* kGuardTheGroup =
    "Make the group an argument, or write rehearse::watch(group); for the group of all ranks write "
    "rehearse::world_group().";

}  // namespace rehearse::compiler
