// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/compile/watch.h>

#include <cstdint>
#include <utility>

#include <rehearse/compile/errors.h>
#include <rehearse_internal/exec/fiber_local.h>

#include "compile/guards/watch_list.h"

// There when the program is linked with AddressSanitizer.
extern "C" {
[[gnu::weak]] void* __asan_get_current_fake_stack();
[[gnu::weak]] void* __asan_addr_is_in_fake_stack(void* fake_stack, void* address, void** begin, void** end);
}

namespace rehearse::compiler {
namespace {

const exec::FiberLocal<WatchScope*> open_watch;

// AddressSanitizer may keep a function's variables elsewhere, to find uses after return: then where they would be.
std::uintptr_t place_on_stack(const void* address) {
  void* on_stack = nullptr;
  if (__asan_addr_is_in_fake_stack != nullptr) {
    void* const fake = __asan_get_current_fake_stack();
    if (fake != nullptr) on_stack = __asan_addr_is_in_fake_stack(fake, const_cast<void*>(address), nullptr, nullptr);
  }
  return reinterpret_cast<std::uintptr_t>(on_stack != nullptr ? on_stack : address);
}

}  // namespace

WatchScope::WatchScope(WatchList& list, const void* frame)
    : before_(std::exchange(open_watch.get(), this)), list_(list), frame_(frame) {}
WatchScope::~WatchScope() { open_watch.get() = before_; }

void WatchScope::add(const void* address, std::shared_ptr<const Watched> watched) {
  // Stacks grow downwards: what lies between here and the compiled call is gone when it returns.
  const auto at = place_on_stack(address);
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  if (here <= at && at < reinterpret_cast<std::uintptr_t>(frame_)) {
    const GuardFailure told = watched->failure();
    throw CompileError((told.line.empty() ? "" : told.line + ": ") +
                       "watch() was given a variable of the compiled function itself, which is gone in the next call; "
                       "watch what it is a copy of, or make it an argument");
  }
  list_.add(std::move(watched));
}

bool is_watching() noexcept {
  WatchScope* const* open = open_watch.find();
  return open && *open;
}

void add_watched(const void* address, std::shared_ptr<const Watched> watched) {
  open_watch.get()->add(address, std::move(watched));
}

}  // namespace rehearse::compiler
