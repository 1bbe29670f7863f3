// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <span>
#include <string_view>
#include <utility>

#include "capture/fake/call/operator_call.h"

// One table for each family of operators. To add a rule, add a line to its family's table.
namespace rehearse::capture {

using RuleTable = std::span<const std::pair<const std::string_view, Rule>>;

RuleTable attention_rules();
RuleTable convolution_rules();
RuleTable copy_rules();
RuleTable data_rules();
RuleTable dimension_rules();
RuleTable factory_rules();
RuleTable index_rules();
RuleTable join_rules();
RuleTable loss_rules();
RuleTable matrix_rules();
RuleTable normalise_rules();
RuleTable reduction_rules();
RuleTable storage_rules();
RuleTable view_rules();

}  // namespace rehearse::capture
