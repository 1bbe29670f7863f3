// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include <ATen/native/TypeProperties.h>

#include "capture/fake/call/results.h"
#include "capture/fake/rules/rule_tables.h"

namespace rehearse::capture {
namespace {

// LibTorch's cat() skips tensors of size [0], because programs often start with an empty tensor.
bool is_skipped(const at::Tensor& tensor) { return tensor.dim() == 1 && is_known(tensor.sym_size(0).sym_eq(0)); }

c10::MemoryFormat common_format(const std::vector<at::Tensor>& tensors) {
  const c10::MemoryFormat first = suggested_format(tensors.front());
  const bool all = std::all_of(tensors.begin(), tensors.end(),
                               [first](const at::Tensor& tensor) { return suggested_format(tensor) == first; });
  return all ? first : c10::MemoryFormat::Contiguous;
}

void check_others(const at::Tensor& first, const at::Tensor& other, std::size_t dim) {
  TORCH_CHECK(first.dim() == other.dim(), "Tensors must have same number of dimensions: got ", first.dim(), " and ",
              other.dim());
  for (std::size_t d = 0; d < static_cast<std::size_t>(first.dim()); ++d) {
    if (d == dim) continue;
    TORCH_SYM_CHECK(first.sym_sizes()[d].sym_eq(other.sym_sizes()[d]),
                    "Sizes of tensors must match except in dimension ", dim, ": got ", first.sym_sizes(), " and ",
                    other.sym_sizes());
  }
}

Outputs cat(const Call& call) {
  const std::vector<at::Tensor> all = call.tensors(0);
  TORCH_CHECK(!all.empty(), "expected a non-empty list of Tensors");
  std::vector<at::Tensor> tensors;
  std::copy_if(all.begin(), all.end(), std::back_inserter(tensors), [](const at::Tensor& t) { return !is_skipped(t); });
  const c10::ScalarType dtype = at::native::result_type(all);
  if (tensors.empty()) return {result(call, SymInts{0}, dtype)};
  const std::size_t dim = wrap(call.integer(1), tensors.front().dim());
  TORCH_CHECK(tensors.front().dim() > 0, "zero-dimensional tensor cannot be concatenated");
  SymInts sizes = tensors.front().sym_sizes().vec();
  for (std::size_t i = 1; i < tensors.size(); ++i) {
    check_others(tensors.front(), tensors[i], dim);
    sizes[dim] = sizes[dim] + tensors[i].sym_sizes()[dim];
  }
  return {result(call, std::move(sizes), dtype, common_format(all))};
}

Outputs stack(const Call& call) {
  const std::vector<at::Tensor> tensors = call.tensors(0);
  TORCH_CHECK(!tensors.empty(), "stack expects a non-empty TensorList");
  const at::Tensor& first = tensors.front();
  for (const at::Tensor& other : tensors) check_others(first, other, static_cast<std::size_t>(first.dim()));
  const std::size_t dim = wrap(call.integer(1), first.dim() + 1);
  SymInts sizes = first.sym_sizes().vec();
  sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(dim), static_cast<std::int64_t>(tensors.size()));
  return {result(call, std::move(sizes), at::native::result_type(tensors))};
}

constexpr std::pair<const std::string_view, Rule> kJoinRules[] = {
    {"aten::cat", cat},
    {"aten::stack", stack},
};

}  // namespace

RuleTable join_rules() { return kJoinRules; }

}  // namespace rehearse::capture
