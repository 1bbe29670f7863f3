// SPDX-License-Identifier: BSD-3-Clause
// Rules for operators whose results depend on data. A rule that has no answer without the data throws
// DataDependentRead.
#include <ATen/ExpandUtils.h>

#include <rehearse_internal/shapes/shape_env.h>
#include "capture/fake/call/results.h"
#include "capture/fake/rules/rule_tables.h"

#include <rehearse_internal/capture/fake_errors.h>

namespace rehearse::capture {
namespace {

// A tensor equals itself unless it has a NaN. Tensors of different sizes differ.
Outputs equal(const Call& call) {
  const at::Tensor& left = call.tensor(0);
  const at::Tensor& right = call.tensor(1);
  if (fake_id(left) == fake_id(right) && c10::isIntegralType(left.scalar_type(), /*includeBool=*/true)) {
    return {c10::IValue(true)};
  }
  if (left.dim() != right.dim()) return {c10::IValue(false)};
  for (std::int64_t d = 0; d < left.dim(); ++d) {
    if (TORCH_GUARD_OR_FALSE(left.sym_size(d).sym_ne(right.sym_size(d)))) return {c10::IValue(false)};
  }
  throw DataDependentRead(call.facts.name, exec::CallSite::capture());
}

// Returns nothing; the check needs the data.
Outputs assert_async(const Call&) { return {}; }

// A size that only the running program will know.
c10::SymInt unbacked(const Call& call) {
  if (!call.mode.shapes()) throw DataDependentRead(call.facts.name, exec::CallSite::capture());
  return call.mode.add_unbacked();
}

Outputs local_scalar_dense(const Call& call) {
  const bool is_integer = c10::isIntegralType(call.tensor(0).scalar_type(), false);
  if (!is_integer || !call.mode.reads_symbolically() || !call.mode.shapes()) {
    throw DataDependentRead(call.facts.name, exec::CallSite::capture());
  }
  return {c10::IValue(at::Scalar(call.mode.add_unbacked_number()))};
}

// The result has one row for each nonzero element. Its memory layout is column-major.
Outputs nonzero(const Call& call) {
  const c10::SymInt count = unbacked(call);
  return {result(call, Layout{{count, call.tensor(0).dim()}, {1, count}}, c10::kLong)};
}

Outputs masked_select(const Call& call) {
  // Throws if the mask cannot be broadcast.
  at::infer_size_symint(call.tensor(0).sym_sizes(), call.tensor(1).sym_sizes());
  return {result(call, SymInts{unbacked(call)}, call.tensor(0).scalar_type())};
}

// _unique(self, sorted, return_inverse). A result that the call does not ask for has size 0.
Outputs unique(const Call& call) {
  const at::Tensor& self = call.tensor(0);
  return {result(call, SymInts{unbacked(call)}, self.scalar_type()),
          result(call, call.boolean(2) ? self.sym_sizes().vec() : SymInts{0}, c10::kLong)};
}

// _unique2(self, sorted, return_inverse, return_counts)
Outputs unique_with_counts(const Call& call) {
  Outputs outputs = unique(call);
  const SymInts count = std::get<TensorSpec>(outputs.front().value).sizes;
  outputs.push_back(result(call, call.boolean(3) ? count : SymInts{0}, c10::kLong));
  return outputs;
}

// repeat_interleave.Tensor(repeats, output_size)
Outputs repeat_interleave(const Call& call) {
  return {result(call, SymInts{call.has(1) ? call.sym_int(1) : unbacked(call)}, call.tensor(0).scalar_type())};
}

constexpr std::pair<const std::string_view, Rule> kDataRules[] = {
    {"aten::equal", equal},
    {"aten::_assert_async.msg", assert_async},
    {"aten::_local_scalar_dense", local_scalar_dense},
    {"aten::nonzero", nonzero},
    {"aten::masked_select", masked_select},
    {"aten::_unique", unique},
    {"aten::_unique2", unique_with_counts},
    {"aten::repeat_interleave.Tensor", repeat_interleave},
};

}  // namespace

RuleTable data_rules() { return kDataRules; }

}  // namespace rehearse::capture
