// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <optional>

#include <ATen/ExpandUtils.h>

#include <rehearse_internal/capture/fake_errors.h>
#include <rehearse_internal/shapes/shape_env.h>
#include "capture/fake/call/results.h"
#include "capture/fake/rules/rule_tables.h"

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

// For equal sizes, does not ask whether one of them is 1, because this question has no answer for an unbacked size.
SymInts broadcast_sizes(const SymInts& sizes, c10::SymIntArrayRef others) {
  const auto equal = [](const c10::SymInt& a, const c10::SymInt& b) { return is_known(a.sym_eq(b)); };
  if (std::equal(sizes.begin(), sizes.end(), others.begin(), others.end(), equal)) return sizes;
  return at::infer_size_symint(sizes, others);
}

struct Indexed {
  std::vector<std::optional<at::Tensor>> indices;  // one for each dimension of self
  SymInts sizes;                                   // the sizes to which the index tensors broadcast
};

// Converts all indices to integer indices: a mask of n dimensions becomes n indices, one for each of its dimensions.
Indexed indices_of(const Call& call) {
  const at::Tensor& self = call.tensor(0);
  Indexed indexed;
  const auto add = [&](const at::Tensor& index) {
    const bool first = indexed.sizes.empty();  // also true if all earlier indices are 0-dimensional
    indexed.sizes = first ? index.sym_sizes().vec() : broadcast_sizes(indexed.sizes, index.sym_sizes());
    indexed.indices.emplace_back(index);
  };
  for (const std::optional<at::Tensor>& index : call.arguments[1].toOptionalTensorVector()) {
    if (!index || !index->defined()) {
      indexed.indices.emplace_back();
    } else if (index->scalar_type() == c10::kBool || index->scalar_type() == c10::kByte) {
      if (!call.mode.shapes()) throw DataDependentRead(call.facts.name, exec::CallSite::capture());
      const at::Tensor positions = make_fake(result(call, SymInts{call.mode.add_unbacked()}, c10::kLong));
      for (std::int64_t d = 0; d < index->dim(); ++d) add(positions);
    } else {
      add(*index);
    }
  }
  TORCH_CHECK_INDEX(indexed.indices.size() <= static_cast<std::size_t>(self.dim()), "too many indices for tensor of ",
                    "dimension ", self.dim());
  indexed.indices.resize(static_cast<std::size_t>(self.dim()));
  return indexed;
}

// The position of the index dimensions in the result: the first indexed dimension if the indexed dimensions are
// adjacent, else 0.
std::size_t position_of_indices(const std::vector<std::optional<at::Tensor>>& indices) {
  const auto is_set = [](const std::optional<at::Tensor>& index) { return index.has_value(); };
  const auto first = std::find_if(indices.begin(), indices.end(), is_set);
  const auto end = std::find_if_not(first, indices.end(), is_set);
  return std::any_of(end, indices.end(), is_set) ? 0 : static_cast<std::size_t>(first - indices.begin());
}

// Strides of self, then of each index, in the result's shape. Self has stride 0 along the dimensions of the indices,
// and an index has stride 0 along those of self.
std::vector<SymInts> strides_in_result(const SymInts& kept, const Indexed& indexed, std::size_t position) {
  const std::size_t dimensions = kept.size() + indexed.sizes.size();
  const auto at = static_cast<std::ptrdiff_t>(position);
  std::vector<SymInts> operands{kept};
  operands[0].insert(operands[0].begin() + at, indexed.sizes.size(), c10::SymInt(0));
  for (const std::optional<at::Tensor>& index : indexed.indices) {
    if (!index) continue;
    SymInts along(dimensions, c10::SymInt(0));
    const std::size_t first = position + indexed.sizes.size() - static_cast<std::size_t>(index->dim());
    for (std::size_t d = 0; d < static_cast<std::size_t>(index->dim()); ++d) {
      if (!is_known(index->sym_sizes()[d].sym_eq(1))) along[first + d] = index->sym_strides()[d];
    }
    operands.push_back(std::move(along));
  }
  return operands;
}

// index(self, indices): the dimensions of the indices replace the indexed dimensions.
Outputs index(const Call& call) {
  const at::Tensor& self = call.tensor(0);
  const Indexed indexed = indices_of(call);
  const std::size_t position = position_of_indices(indexed.indices);
  SymInts sizes, strides;
  for (std::size_t d = 0; d < indexed.indices.size(); ++d) {
    if (indexed.indices[d]) continue;
    sizes.push_back(self.sym_sizes()[d]);
    strides.push_back(self.sym_strides()[d]);
  }
  sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(position), indexed.sizes.begin(), indexed.sizes.end());
  SymInts of_result = iterated_strides(sizes, strides_in_result(strides, indexed, position));
  return {result(call, Layout{std::move(sizes), std::move(of_result)}, self.scalar_type())};
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

// index_add_(self, dim, index, source, alpha). Its Meta kernel refuses an empty index, which the CPU kernel accepts.
Outputs index_add_in_place(const Call& call) {
  wrap(call.integer(1), call.tensor(0).dim());
  return Outputs(1);
}

constexpr std::pair<const std::string_view, Rule> kIndexRules[] = {
    {"aten::index_select", index_select},      {"aten::gather", gather}, {"aten::masked_fill.Scalar", masked_fill},
    {"aten::masked_fill.Tensor", masked_fill}, {"aten::topk", topk},     {"aten::index.Tensor", index},
    {"aten::index_add_", index_add_in_place},
};

}  // namespace

RuleTable index_rules() { return kIndexRules; }

}  // namespace rehearse::capture
