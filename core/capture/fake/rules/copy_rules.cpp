// SPDX-License-Identifier: BSD-3-Clause
// Rules for copies and casts, and for results with the layout of an argument.
#include <ATen/WrapDimUtilsMulti.h>

#include "capture/fake/call/results.h"
#include "capture/fake/rules/rule_tables.h"

namespace rehearse::capture {
namespace {

using c10::MemoryFormat;

Outputs clone(const Call& call) {
  const at::Tensor& self = call.tensor(0);
  return {result_like(call, self, self.scalar_type(), format_or(call, 1, MemoryFormat::Preserve))};
}

// _to_copy(self, dtype, layout, device, pin_memory, non_blocking, memory_format)
Outputs to_copy(const Call& call) {
  const at::Tensor& self = call.tensor(0);
  return {result_like(call, self, call.dtype_or(1, self.scalar_type()), format_or(call, 6, MemoryFormat::Preserve))};
}

// empty_like(self, dtype, layout, device, pin_memory, memory_format) and similar operators.
Outputs empty_like(const Call& call) {
  const at::Tensor& self = call.tensor(0);
  return {result_like(call, self, call.dtype_or(1, self.scalar_type()), format_or(call, 5, MemoryFormat::Preserve))};
}

// full_like(self, fill_value, ...), randint_like(self, high, ...)
Outputs full_like(const Call& call) {
  const at::Tensor& self = call.tensor(0);
  return {result_like(call, self, call.dtype_or(2, self.scalar_type()), format_or(call, 6, MemoryFormat::Preserve))};
}

// randint_like(self, low, high, ...)
Outputs randint_like_range(const Call& call) {
  const at::Tensor& self = call.tensor(0);
  return {result_like(call, self, call.dtype_or(3, self.scalar_type()), format_or(call, 7, MemoryFormat::Preserve))};
}

Outputs like_first(const Call& call) { return {result_like(call, call.tensor(0), call.tensor(0).scalar_type())}; }

Outputs contiguous_like_first(const Call& call) {
  const at::Tensor& self = call.tensor(0);
  return {result_like(call, self, self.scalar_type(), MemoryFormat::Contiguous)};
}

// scatter(self, dim, ...) and similar operators
Outputs contiguous_along(const Call& call) {
  wrap(call.integer(1), call.tensor(0).dim());
  return contiguous_like_first(call);
}

// flip(self, dims)
Outputs flip(const Call& call) {
  const auto dims = call.integers(1);
  at::dim_list_to_bitset(at::IntArrayRef(dims), static_cast<std::size_t>(call.tensor(0).dim()));  // checks them
  return like_first(call);
}

// roll(self, shifts, dims). Without dimensions, the kernel rolls the flattened tensor. For an empty tensor, the
// kernel does not look at the dimensions and returns a clone, which has the same strides.
Outputs roll(const Call& call) {
  const at::Tensor& self = call.tensor(0);
  const std::size_t shifts = call.sym_ints(1).size();
  const std::vector<std::int64_t> dims = call.integers(2);
  TORCH_CHECK(shifts > 0, "`shifts` required");
  TORCH_CHECK(shifts == dims.size() || (shifts == 1 && dims.empty()),
              "shifts and dimensions must align. shifts: ", shifts, ", dims:", dims.size());
  if (!dims.empty() && is_known(self.sym_numel().sym_eq(0))) return like_first(call);
  for (const std::int64_t dim : dims) wrap_existing(dim, self.dim());
  return contiguous_like_first(call);
}

// native_dropout(input, p, train): the result, and the mask of the kept elements. For an empty tensor, the kernel
// returns the input itself, and a mask of its dtype.
Outputs native_dropout(const Call& call) {
  const at::Tensor& input = call.tensor(0);
  if (is_known(input.sym_numel().sym_eq(0))) {
    return {result_like(call, input, input.scalar_type()), result_like(call, input, input.scalar_type())};
  }
  const TensorSpec mask = result_like(call, input, c10::kBool);
  if (call.has(2) && !call.boolean(2)) return {result_like(call, input, input.scalar_type()), mask};
  return {result(call, elementwise_layout({input}), input.scalar_type()), mask};
}

// sort(self, [stable,] dim, descending): values, indices.
template <std::size_t place_of_dim>
Outputs sort(const Call& call) {
  const at::Tensor& self = call.tensor(0);
  wrap(call.integer(place_of_dim), self.dim());
  return {result_like(call, self, self.scalar_type()), result_like(call, self, c10::kLong)};
}

constexpr std::pair<const std::string_view, Rule> kCopyRules[] = {
    {"aten::clone", clone},
    {"aten::_to_copy", to_copy},
    {"aten::empty_like", empty_like},
    {"aten::zeros_like", empty_like},
    {"aten::ones_like", empty_like},
    {"aten::rand_like", empty_like},
    {"aten::randn_like", empty_like},
    {"aten::full_like", full_like},
    {"aten::randint_like", full_like},
    {"aten::randint_like.low_dtype", randint_like_range},
    {"aten::native_dropout", native_dropout},
    {"aten::sort", sort<1>},
    {"aten::sort.stable", sort<2>},
    {"aten::flip", flip},
    {"aten::roll", roll},
    {"aten::index_put", like_first},
    {"aten::tril", contiguous_like_first},
    {"aten::triu", contiguous_like_first},
    {"aten::bernoulli", contiguous_like_first},
    {"aten::scatter.src", contiguous_along},
    {"aten::scatter.value", contiguous_along},
    {"aten::scatter.reduce", contiguous_along},
    {"aten::scatter.value_reduce", contiguous_along},
    {"aten::scatter_add", contiguous_along},
    {"aten::scatter_reduce.two", contiguous_along},
    {"aten::index_add", contiguous_along},
    {"aten::index_copy", contiguous_along},
};

}  // namespace

RuleTable copy_rules() { return kCopyRules; }

}  // namespace rehearse::capture
