// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rehearse {

// For "did you mean": the word of `among` that is nearest to `word`, ignoring case; the first of equally near words. A
// word is near if at most one letter, or at most a third of the letters of `word`, would have to change. Empty if no
// word is near.
std::string nearest_spelling(std::string_view word, const std::vector<std::string>& among);

// " (did you mean "seed"?)" with the nearest spelling, or an empty text.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& among);

}  // namespace rehearse
