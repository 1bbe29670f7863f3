// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <span>
#include <string_view>
#include <utility>

#include "capture/fake/call.h"

// One table for each family of operators; a rule is added by a line in its table.
namespace rehearse::capture {

using RuleTable = std::span<const std::pair<const std::string_view, Rule>>;

RuleTable data_rules();

}  // namespace rehearse::capture
