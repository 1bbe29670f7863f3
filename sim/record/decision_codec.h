// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rehearse/exec/decision_log.h>

namespace rehearse::sim {

// Decisions as bytes; the coding is described in rehearse/sim/run_log.h.
std::string encoded(std::span<const Decision> decisions);

// Nothing when `bytes` is not exactly `count` decisions whose answers are among their options.
std::optional<std::vector<Decision>> decoded(std::string_view bytes, std::size_t count);

}  // namespace rehearse::sim
