// SPDX-License-Identifier: BSD-3-Clause
// Operators whose result is data: what a fake cannot answer, and what it can.
#include "capture/fake/rule_tables.h"

#include <ATen/core/Scalar.h>

#include <rehearse/capture/fake_errors.h>

namespace rehearse::capture {
namespace {

// A value equals itself: nn::MultiheadAttention asks whether query, key and value are the same tensor. (Eager mode
// looks for a NaN first; a layer that asks this would not differ.)
Outputs equal(const Call& call) {
  const at::Tensor& left = call.tensor(0);
  const at::Tensor& right = call.tensor(1);
  if (fake_id(left) == fake_id(right)) return {c10::IValue(true)};
  if (left.dim() != right.dim()) return {c10::IValue(false)};
  for (std::int64_t d = 0; d < left.dim(); ++d) {
    if (TORCH_GUARD_OR_FALSE(left.sym_size(d).sym_ne(right.sym_size(d)))) return {c10::IValue(false)};
  }
  throw DataDependentRead(call.facts.name, exec::CallSite::capture());
}

Outputs local_scalar_dense(const Call& call) { throw DataDependentRead(call.facts.name, exec::CallSite::capture()); }

constexpr std::pair<const std::string_view, Rule> kRules[] = {
    {"aten::equal", equal},
    {"aten::_local_scalar_dense", local_scalar_dense},
};

}  // namespace

RuleTable data_rules() { return kRules; }

}  // namespace rehearse::capture
