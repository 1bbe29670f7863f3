// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/exec/world_number.h>

#include <atomic>

#include "executor_impl.h"

namespace rehearse::exec {

std::uint64_t new_world_number() noexcept {
  constinit static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

std::uint64_t world_number() noexcept {
  RankExecutor* const executor = RankExecutor::current();
  return executor != nullptr ? executor->impl().world : 0;
}

}  // namespace rehearse::exec
