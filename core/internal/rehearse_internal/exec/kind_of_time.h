// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>

#include <rehearse_internal/exec/clock.h>

namespace rehearse::exec {

// The words for the clock's time in messages.
inline std::string_view kind_of_time(const Clock& clock) noexcept {
  return clock.passes_by_itself() ? "real time" : "virtual time";
}

}  // namespace rehearse::exec
