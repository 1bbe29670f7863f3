// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>

#include <rehearse/job/report.h>

namespace corpus {

// Returns whether the report names `place`, a file with its line, followed by a function. The place may be in the
// headline, in a remark or in a finding. It may also be a rank's place, or the place of a call that the report compares
// or counts. The list of last events does not count, because any call may be in it.
bool leads_to(const rehearse::Report& report, const std::string& place);

// Returns whether a remark, the hint, or a detail of a finding fits `pattern`.
bool says(const rehearse::Report& report, std::string_view pattern);

// `pattern` with the place for each "{}".
std::string with_place(std::string_view pattern, std::string_view place);

// Returns whether `text` fits `pattern`, in which "*" stands for any text.
bool fits(std::string_view text, std::string_view pattern);

}  // namespace corpus
