// SPDX-License-Identifier: BSD-3-Clause
// Rules for views that reorder, add and remove dimensions.
#include <algorithm>
#include <vector>

#include <rehearse/exec/call_site.h>
#include <rehearse_internal/capture/fake_errors.h>

#include "capture/fake/call/results.h"
#include "capture/fake/rules/rule_tables.h"

namespace rehearse::capture {
namespace {

TensorSpec with_order(const at::Tensor& self, const std::vector<std::size_t>& order) {
  SymInts sizes, strides;
  for (const std::size_t d : order) {
    sizes.push_back(self.sym_sizes()[d]);
    strides.push_back(self.sym_strides()[d]);
  }
  return view_of(self, std::move(sizes), std::move(strides));
}

std::vector<std::size_t> order_as_it_is(const at::Tensor& self) {
  std::vector<std::size_t> order(static_cast<std::size_t>(self.dim()));
  for (std::size_t d = 0; d < order.size(); ++d) order[d] = d;
  return order;
}

Outputs alias(const Call& call) { return {with_order(call.tensor(0), order_as_it_is(call.tensor(0)))}; }

// permute(self, dims)
Outputs permute(const Call& call) {
  const at::Tensor& self = call.tensor(0);
  const std::vector<std::int64_t> dims = call.integers(1);
  TORCH_CHECK(static_cast<std::int64_t>(dims.size()) == self.dim(), "permute: number of dimensions in the ",
              "tensor input does not match the length of the desired ordering of dimensions i.e. input.dim() = ",
              self.dim(), " is not equal to len(dims) = ", dims.size());
  std::vector<bool> seen(dims.size(), false);
  std::vector<std::size_t> order;
  for (const std::int64_t dim : dims) {
    order.push_back(wrap(dim, self.dim()));
    TORCH_CHECK(!seen[order.back()], "permute(): duplicate dims are not allowed.");
    seen[order.back()] = true;
  }
  return {with_order(self, order)};
}

Output transposed(const at::Tensor& self, std::int64_t first, std::int64_t second) {
  std::vector<std::size_t> order = order_as_it_is(self);
  const std::size_t one = wrap(first, self.dim()), other = wrap(second, self.dim());
  if (!order.empty()) std::swap(order[one], order[other]);
  return with_order(self, order);
}

// transpose(self, dim0, dim1)
Outputs transpose(const Call& call) { return {transposed(call.tensor(0), call.integer(1), call.integer(2))}; }

Outputs t(const Call& call) {
  const at::Tensor& self = call.tensor(0);
  TORCH_CHECK(self.dim() <= 2, "t() expects a tensor with <= 2 dimensions, but self is ", self.dim(), "D");
  return {self.dim() < 2 ? alias(call).front() : transposed(self, 0, 1)};
}

// unsqueeze(self, dim)
Outputs unsqueeze(const Call& call) {
  const at::Tensor& self = call.tensor(0);
  const std::size_t dim = wrap(call.integer(1), self.dim() + 1);
  SymInts sizes = self.sym_sizes().vec(), strides = self.sym_strides().vec();
  const c10::SymInt stride = dim < sizes.size() ? sizes[dim] * strides[dim] : c10::SymInt(1);
  sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(dim), 1);
  strides.insert(strides.begin() + static_cast<std::ptrdiff_t>(dim), stride);
  return {view_of(self, std::move(sizes), std::move(strides))};
}

// A view without the dimensions in `dims` whose size is 1.
TensorSpec squeezed(const at::Tensor& self, const std::vector<bool>& dims) {
  std::vector<std::size_t> kept;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (!dims[d] || !holds(self.sym_sizes()[d].sym_eq(1))) kept.push_back(d);
  }
  return with_order(self, kept);
}

Outputs squeeze(const Call& call) {
  return {squeezed(call.tensor(0), std::vector<bool>(static_cast<std::size_t>(call.tensor(0).dim()), true))};
}

// squeeze.dim(self, dim), squeeze.dims(self, dims)
Outputs squeeze_dims(const Call& call) {
  const at::Tensor& self = call.tensor(0);
  const auto given = call.arguments[1].isInt() ? std::vector<std::int64_t>{call.integer(1)} : call.integers(1);
  std::vector<bool> dims(static_cast<std::size_t>(self.dim()), false);
  for (const std::int64_t dim : given) {
    const std::size_t at = wrap(dim, self.dim());
    // A 0-dimensional tensor has no dimension to remove, although wrap() accepts 0 and -1 for it.
    if (!dims.empty()) dims[at] = true;
  }
  return {squeezed(self, dims)};
}

// In place, squeeze changes the tensor's number of dimensions, and a graph cannot leave that number open. Therefore the
// rule throws if only data can tell whether a size is 1.
template <Rule of_view>
Outputs squeeze_in_place(const Call& call) {
  for (const c10::SymInt& size : call.tensor(0).sym_sizes()) {
    const c10::SymBool is_one = size.sym_eq(1);
    if (TORCH_GUARD_OR_TRUE(is_one) && !TORCH_GUARD_OR_FALSE(is_one)) {
      throw DataDependentRead(call.facts.name, exec::CallSite::capture());
    }
  }
  return of_view(call);
}

constexpr std::pair<const std::string_view, Rule> kDimensionRules[] = {
    {"aten::alias", alias},
    {"aten::detach", alias},
    {"aten::permute", permute},
    {"aten::transpose.int", transpose},
    {"aten::transpose_", transpose},
    {"aten::t", t},
    {"aten::t_", t},
    {"aten::unsqueeze", unsqueeze},
    {"aten::unsqueeze_", unsqueeze},
    {"aten::squeeze", squeeze},
    {"aten::squeeze_", squeeze_in_place<squeeze>},
    {"aten::squeeze.dim", squeeze_dims},
    {"aten::squeeze_.dim", squeeze_in_place<squeeze_dims>},
    {"aten::squeeze.dims", squeeze_dims},
    {"aten::squeeze_.dims", squeeze_in_place<squeeze_dims>},
};

}  // namespace

RuleTable dimension_rules() { return kDimensionRules; }

}  // namespace rehearse::capture
