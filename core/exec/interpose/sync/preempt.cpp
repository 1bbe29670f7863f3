// SPDX-License-Identifier: BSD-3-Clause
#include "preempt.h"

#include <algorithm>
#include <unordered_map>

#include "exec/call_site/symbolize.h"

namespace rehearse::exec::interpose {

bool is_users_call(void* return_address) {
  static std::unordered_map<void*, bool> known;
  // To look a function up takes locks, too.
  static constinit thread_local bool looking = false;
  if (looking) return false;
  if (const auto found = known.find(return_address); found != known.end()) return found->second;
  looking = true;
  const auto& frames = resolve(return_address);
  const bool users = !in_foreign_library(return_address) &&
                     std::any_of(frames.begin(), frames.end(), [](const auto& frame) { return frame.users_own; });
  known.emplace(return_address, users);
  looking = false;
  return users;
}

}  // namespace rehearse::exec::interpose
