// SPDX-License-Identifier: BSD-3-Clause
#include "capture/joint/stated_facts.h"

#include <algorithm>
#include <string>
#include <vector>

namespace rehearse::capture {

void StatedFacts::add_checks(ExpressionNodes& expressions, graph::Graph& graph) {
  if (shapes_ == nullptr) return;
  for (; checked_ < shapes_->asserts().size(); ++checked_) {
    const shapes::Guard& fact = shapes_->asserts()[checked_];
    const std::vector<std::string> symbols = fact.condition.symbols();
    const bool has_values = std::all_of(symbols.begin(), symbols.end(),
                                        [&](const std::string& symbol) { return expressions.knows_symbol(symbol); });
    if (!has_values) continue;
    graph.call_function(
        "torch.ops.aten._assert_scalar.default",
        {expressions.truth_of(fact.condition), "Runtime assertion failed for expression " + fact.condition.text()});
  }
}

}  // namespace rehearse::capture
