// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/compile/watch.h>

#include <cstdint>
#include <cstring>
#include <utility>

#include <rehearse/compile/errors.h>
#include <rehearse_internal/exec/fiber_local.h>
#include <rehearse_internal/job/world_groups.h>
#include <rehearse_internal/operators/capture_mode.h>

#include "compile/guards/watch_list.h"

// Defined if the program is linked with AddressSanitizer.
extern "C" {
[[gnu::weak]] void* __asan_get_current_fake_stack();
[[gnu::weak]] void* __asan_addr_is_in_fake_stack(void* fake_stack, void* address, void** begin, void** end);
}

namespace rehearse::compiler {
namespace {

const exec::FiberLocal<WatchScope*> open_watch;

// The address of a variable on the stack. AddressSanitizer may keep a function's variables elsewhere, to find uses
// after return; for such a variable, returns its address on the real stack.
std::uintptr_t address_on_stack(const void* address) {
  void* on_stack = nullptr;
  if (__asan_addr_is_in_fake_stack != nullptr) {
    void* const fake = __asan_get_current_fake_stack();
    if (fake != nullptr) on_stack = __asan_addr_is_in_fake_stack(fake, const_cast<void*>(address), nullptr, nullptr);
  }
  return reinterpret_cast<std::uintptr_t>(on_stack != nullptr ? on_stack : address);
}

// While it lives, access to a group does not count as a use.
class NotListening {
 public:
  NotListening() : use_(operators::GroupUse::exchange(nullptr)) {}
  NotListening(const NotListening&) = delete;
  NotListening& operator=(const NotListening&) = delete;
  ~NotListening() { operators::GroupUse::exchange(use_); }

 private:
  operators::GroupUse* const use_;
};

// Guards that the rank is in the same world: a rank that restarts is in another one.
class WatchedWorld final : public Watched {
 public:
  WatchedWorld(Group world, exec::CallSite where) : world_(std::move(world)), where_(std::move(where)) {}
  bool holds() const override {
    const Group* const now = WorldGroups::find();
    return now != nullptr && is_unchanged(world_, *now);
  }
  GuardFailure failure() const override {
    return {"world_group()", "the world at the capture", "another one", where_.describe()};
  }

 private:
  Group world_;
  exec::CallSite where_;
};

}  // namespace

WatchScope::WatchScope(WatchList& list, const void* frame, std::span<const std::byte> function)
    : before_(std::exchange(open_watch.get(), this)),
      use_before_(GroupUse::exchange(this)),
      list_(list),
      frame_(frame),
      function_(function),
      before_code_(function.begin(), function.end()) {}
WatchScope::~WatchScope() {
  GroupUse::exchange(use_before_);
  open_watch.get() = before_;
}

// The stack grows downwards. Everything between this frame and the compiled call will be gone when that call returns.
bool WatchScope::ends_with_call(const void* object) const noexcept {
  const auto at = address_on_stack(object);
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  return here <= at && at < reinterpret_cast<std::uintptr_t>(frame_);
}

void WatchScope::add(const void* address, std::shared_ptr<const Watched> watched) {
  if (ends_with_call(address)) {
    const GuardFailure failure_found = watched->failure();
    throw CompileError(
        (failure_found.line.empty() ? "" : failure_found.line + ": ") +
        "watch() was given a local variable or an argument of the compiled function, which does not exist "
        "in the next call. Watch the variable from which it is copied, or make it an argument");
  }
  {
    const NotListening looking;
    for (c10d::ProcessGroup* const group : watched->groups()) guarded_.insert(group);
  }
  list_.add(std::move(watched));
}

bool WatchScope::keep(const void* address, c10d::ProcessGroup* group, const std::shared_ptr<const void>& mesh) {
  bool is_kept = false;
  const std::byte* const begin = function_.data();
  for (std::size_t i = 0; i + sizeof(void*) <= function_.size(); i += sizeof(void*)) {
    const void* pointer = nullptr;
    std::memcpy(&pointer, begin + i, sizeof pointer);
    if (address != begin + i && (group == nullptr || pointer != group)) continue;
    list_.keep(i, {pointer, c10::intrusive_ptr<c10d::ProcessGroup>::unsafe_reclaim_from_nonowning(group), mesh});
    is_kept = true;
  }
  return is_kept;
}

void WatchScope::used(const void* address, c10d::ProcessGroup* group, const std::shared_ptr<const void>& mesh) {
  const Group* const world = WorldGroups::find();
  if (address != nullptr && address == world) return used_world(*world);
  if (keep(address, group, mesh)) guarded_.insert(group);
  if (guarded_.contains(group)) return;
  const operators::CaptureMode& mode = *operators::CaptureMode::current();
  const std::string what = "a method of " + title_of_group(group) + ", which is neither an argument nor watched,";
  // A null address means that an operator received the group itself. A capture cannot end inside an operator.
  if (address == nullptr) mode.refuse(what, kGuardTheGroup);
  mode.end_or_refuse(what, kGuardTheGroup);
}

void WatchScope::used_world(const Group& world) {
  if (std::exchange(watches_world_, true)) return;
  const NotListening looking;
  guarded_.insert(world.get().get());
  list_.add(std::make_shared<WatchedWorld>(world, exec::CallSite::capture()));
}

std::string title_of_group(c10d::ProcessGroup* group) {
  if (group == nullptr) return "an empty group";
  const NotListening looking;
  try {
    return "the group \"" + group->getGroupName() + "\"";
  } catch (const c10::Error&) {  // no name was ever set
    return "a group without a name";
  }
}

bool is_watching() noexcept {
  WatchScope* const* open = open_watch.find();
  return open && *open;
}

void add_watched(const void* address, std::shared_ptr<const Watched> watched) {
  open_watch.get()->add(address, std::move(watched));
}

}  // namespace rehearse::compiler
