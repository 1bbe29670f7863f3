// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string_view>

namespace rehearse {

// The state of a rank when its world ended.
enum class RankOutcome {
  returned,  // its body returned
  failed,    // an exception left its body, or its process died
  blocked,   // in a call that had not ended
  stopped,   // it could have gone on
  crashed,   // by a planned fault, and never restarted
};

// "returned", "failed", ...
std::string_view to_string(RankOutcome outcome) noexcept;

// The inverse, for JSON; nullopt if no outcome has that name.
std::optional<RankOutcome> rank_outcome_from_string(std::string_view name) noexcept;

}  // namespace rehearse
