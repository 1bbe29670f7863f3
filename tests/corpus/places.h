// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>

#include <rehearse/job/report.h>

namespace corpus {

// Returns whether a place that the report names begins with `place`: in its headline, its ranks, the calls that differ,
// the calls counted or compared by line, or its remarks. The list of last events does not count, because any call may
// be in it.
bool leads_to(const rehearse::Report& report, const std::string& place);

// Returns whether a finding, remark or hint of the report fits `pattern`.
bool says(const rehearse::Report& report, std::string_view pattern);

// `pattern` with the place for each "{}".
std::string with_place(std::string_view pattern, std::string_view place);

// Returns whether `text` fits `pattern`, in which "*" stands for any text.
bool fits(std::string_view text, std::string_view pattern);

}  // namespace corpus
