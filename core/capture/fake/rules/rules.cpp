// SPDX-License-Identifier: BSD-3-Clause
#include <unordered_map>

#include "capture/fake/call/operator_facts.h"
#include "capture/fake/rules/rule_tables.h"

namespace rehearse::capture {

Rule find_rule(std::string_view name) {
  static const std::unordered_map<std::string_view, Rule> rules = [] {
    std::unordered_map<std::string_view, Rule> all;
    for (const RuleTable table : {attention_rules(), convolution_rules(), copy_rules(), data_rules(), dimension_rules(),
                                  factory_rules(), index_rules(), join_rules(), loss_rules(), matrix_rules(),
                                  normalise_rules(), reduction_rules(), storage_rules(), view_rules()})
      all.insert(table.begin(), table.end());
    return all;
  }();
  const auto found = rules.find(name);
  return found == rules.end() ? nullptr : found->second;
}

}  // namespace rehearse::capture
