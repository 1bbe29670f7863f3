// SPDX-License-Identifier: BSD-3-Clause
// Rules for copies and casts, and for results with the layout of an argument.
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

// roll(self, shifts, dims). For an empty tensor the kernel returns a clone, which has the same strides.
Outputs roll(const Call& call) {
  const at::Tensor& self = call.tensor(0);
  return is_known(self.sym_numel().sym_eq(0)) ? like_first(call) : contiguous_like_first(call);
}

// native_dropout(input, p, train): the result, and the mask of the kept elements.
Outputs native_dropout(const Call& call) {
  const at::Tensor& input = call.tensor(0);
  return {result(call, elementwise_layout({input}), input.scalar_type()), result_like(call, input, c10::kBool)};
}

// sort(self, [stable,] dim, descending): values, indices.
Outputs sort(const Call& call) {
  const at::Tensor& self = call.tensor(0);
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
    {"aten::sort", sort},
    {"aten::sort.stable", sort},
    {"aten::flip", like_first},
    {"aten::roll", roll},
    {"aten::index_put", like_first},
    {"aten::tril", contiguous_like_first},
    {"aten::triu", contiguous_like_first},
    {"aten::bernoulli", contiguous_like_first},
    {"aten::scatter.src", contiguous_like_first},
    {"aten::scatter.value", contiguous_like_first},
    {"aten::scatter.reduce", contiguous_like_first},
    {"aten::scatter.value_reduce", contiguous_like_first},
    {"aten::scatter_add", contiguous_like_first},
    {"aten::scatter_reduce.two", contiguous_like_first},
    {"aten::index_add", contiguous_like_first},
    {"aten::index_copy", contiguous_like_first},
};

}  // namespace

RuleTable copy_rules() { return kCopyRules; }

}  // namespace rehearse::capture
