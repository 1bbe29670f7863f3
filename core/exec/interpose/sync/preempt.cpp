// SPDX-License-Identifier: BSD-3-Clause
#include "preempt.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <mutex>
#include <string>
#include <unordered_map>

#include <rehearse/exec/call_site.h>
#include <rehearse_internal/exec/native_scope.h>

#include "exec/call_site/symbolize.h"

namespace rehearse::exec::interpose {
namespace {

enum class Caller { user, library, standard_header };

Caller look_up(void* return_address) {
  if (in_foreign_library(return_address)) return Caller::library;
  const auto& frames = resolve(return_address);
  if (std::any_of(frames.begin(), frames.end(), [](const auto& frame) { return frame.users_own; })) return Caller::user;
  const bool is_standard = std::all_of(frames.begin(), frames.end(), [](const ResolvedFrame& resolved) {
    const auto& [function, file, line] = resolved.frame;
    return file.empty() ? function.starts_with("std::") : file.find("/c++/") != std::string::npos;
  });
  return is_standard ? Caller::standard_header : Caller::library;
}

Caller caller_at(void* return_address) {
  static std::mutex mutex;  // of worlds on several threads
  static std::unordered_map<void*, Caller> known;
  const std::lock_guard lock(mutex);
  if (const auto found = known.find(return_address); found != known.end()) return found->second;
  const Caller caller = look_up(return_address);
  known.emplace(return_address, caller);
  return caller;
}

// In code that is not optimized std::mutex::lock() is a function of its own, which everybody calls: who called that?
Caller caller_around(void* return_address) {
  constexpr std::size_t kFrames = 16;
  std::array<void*, kFrames> stack;
  const auto end = stack.begin() + CallSite::capture_to(stack);
  const auto begin = std::find(stack.begin(), end, return_address);
  const auto outside = std::find_if(begin, end, [](void* at) { return caller_at(at) != Caller::standard_header; });
  return outside == end ? Caller::library : caller_at(*outside);
}

}  // namespace

bool is_users_call(void* return_address) {
  const NativeScope looking;  // which takes locks, too
  Caller caller = caller_at(return_address);
  if (caller == Caller::standard_header) caller = caller_around(return_address);
  return caller == Caller::user;
}

}  // namespace rehearse::exec::interpose
