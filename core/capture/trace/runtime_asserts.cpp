// SPDX-License-Identifier: BSD-3-Clause
// Facts that the captured function states about sizes known only at run time (TORCH_SYM_CHECK): capture goes on with
// them, and the graph checks them where they were stated.
#include <algorithm>

#include <rehearse_internal/shapes/shape_env.h>

#include "capture/trace/tracer.h"

namespace rehearse::capture {

void Tracer::add_asserts() {
  // By index: making nodes may ask further questions.
  for (; asserts_added_ < shapes_->asserts().size(); ++asserts_added_) {
    const shapes::Guard fact = shapes_->asserts()[asserts_added_];
    const std::vector<std::string> symbols = fact.condition.symbols();
    const bool has_values = std::all_of(symbols.begin(), symbols.end(), [this](const std::string& symbol) {
      return !shapes::is_unbacked_name(symbol) || symbols_.knows_symbol(symbol) || sizes_.contains(symbol);
    });
    if (!has_values) continue;  // of a size that an operator made for itself: no value of the graph has it
    graph_.set_origin(fact.where);
    graph_.call(
        "torch.ops.aten._assert_scalar.default",
        {symbols_.truth_of(fact.condition), "Runtime assertion failed for expression " + fact.condition.text()});
  }
}

}  // namespace rehearse::capture
