// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>

#include <rehearse/job/report.h>

namespace corpus {

// Does one of the places that a report names begin with that: of its headline, of its ranks, of the calls that differ,
// of calls counted and compared by line, of its remarks? Its list of last events, in which anything may stand, does not
// count.
bool leads_to(const rehearse::Report& report, const std::string& place);

// Does a line of what it found, remarks or hints at fit `pattern`?
bool says(const rehearse::Report& report, std::string_view pattern);

// `pattern` with the place for each "{}".
std::string with_place(std::string_view pattern, std::string_view place);

// Is `text` what `pattern` says, in which "*" is anything?
bool fits(std::string_view text, std::string_view pattern);

}  // namespace corpus
