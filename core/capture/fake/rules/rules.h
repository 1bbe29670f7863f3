// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>

#include "capture/fake/call.h"

namespace rehearse::capture {

// What an operator gives, told from the sizes of its arguments with symbols' arithmetic: the table of the rules. Null
// where there is none. `name` as in OperatorFacts.
Rule find_rule(std::string_view name);

}  // namespace rehearse::capture
