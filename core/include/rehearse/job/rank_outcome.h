// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string_view>

namespace rehearse {

// How a rank stood when its world ended.
enum class RankOutcome {
  returned,  // its body returned
  failed,    // an exception left its body, or its process died of it
  blocked,   // in a call that was not over
  stopped,   // it could have gone on
  crashed,   // by a planned fault: it never ran again
};

// "returned", "failed", ...
std::string_view to_string(RankOutcome outcome) noexcept;

// The other way round, for JSON; nothing when no outcome has that name.
std::optional<RankOutcome> rank_outcome_from_string(std::string_view name) noexcept;

}  // namespace rehearse
