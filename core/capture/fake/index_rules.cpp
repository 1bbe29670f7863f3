// SPDX-License-Identifier: BSD-3-Clause
// Selection by indices and masks.
#include <ATen/ExpandUtils.h>

#include "capture/fake/results.h"
#include "capture/fake/rule_tables.h"

namespace rehearse::capture {
namespace {

// index_select(self, dim, index)
Outputs index_select(const Call& call) {
  const at::Tensor& self = call.tensor(0);
  const at::Tensor& index = call.tensor(2);
  TORCH_CHECK_INDEX(index.dim() <= 1, "index_select(): Index is supposed to be a vector");
  SymInts sizes = self.sym_sizes().vec();
  const std::size_t dim = wrap(call.integer(1), self.dim());
  if (!sizes.empty()) sizes[dim] = index.sym_numel();
  return {result(call, std::move(sizes), self.scalar_type())};
}

// gather(self, dim, index)
Outputs gather(const Call& call) {
  wrap(call.integer(1), call.tensor(0).dim());
  return {result(call, call.tensor(2).sym_sizes().vec(), call.tensor(0).scalar_type())};
}

// masked_fill(self, mask, value)
Outputs masked_fill(const Call& call) {
  const at::Tensor& self = call.tensor(0);
  return {result(call, at::infer_size_symint(self.sym_sizes(), call.tensor(1).sym_sizes()), self.scalar_type())};
}

// topk(self, k, dim, largest, sorted): values, indices.
Outputs topk(const Call& call) {
  const at::Tensor& self = call.tensor(0);
  SymInts sizes = self.sym_sizes().vec();
  const std::size_t dim = wrap(call.integer(2), self.dim());
  if (!sizes.empty()) {
    TORCH_SYM_CHECK(call.sym_int(1).sym_le(sizes[dim]), "topk: k is out of range of dimension ", dim);
    sizes[dim] = call.sym_int(1);
  }
  return {result(call, sizes, self.scalar_type()), result(call, sizes, c10::kLong)};
}

constexpr std::pair<const std::string_view, Rule> kIndexRules[] = {
    {"aten::index_select", index_select},      {"aten::gather", gather}, {"aten::masked_fill.Scalar", masked_fill},
    {"aten::masked_fill.Tensor", masked_fill}, {"aten::topk", topk},
};

}  // namespace

RuleTable index_rules() { return kIndexRules; }

}  // namespace rehearse::capture
