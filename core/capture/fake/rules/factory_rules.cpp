// SPDX-License-Identifier: BSD-3-Clause
#include <optional>

#include <ATen/Context.h>

#include <rehearse_internal/libtorch/version.h>

#include "capture/fake/call/results.h"
#include "capture/fake/rules/rule_tables.h"

namespace rehearse::capture {
namespace {

using c10::MemoryFormat;

// factory(size, ..., dtype, layout, device, pin_memory [, memory_format]). The template's parameter is the index of the
// argument dtype.
template <std::size_t dtype, std::size_t sizes = 0>
Outputs of_sizes(const Call& call) {
  return {result(call, call.sym_ints(sizes), call.dtype_or(dtype, at::get_default_dtype_as_scalartype()))};
}

// empty(size, dtype, layout, device, pin_memory, memory_format)
Outputs empty(const Call& call) {
  return {result(call, call.sym_ints(0), call.dtype_or(1, at::get_default_dtype_as_scalartype()),
                 format_or(call, 5, MemoryFormat::Contiguous))};
}

// full(size, fill_value, dtype, ...)
Outputs full(const Call& call) {
  const c10::IValue& fill = call.arguments[1];
  c10::ScalarType dtype = at::get_default_dtype_as_scalartype();
  if (fill.isBool() || fill.isSymBool()) dtype = c10::kBool;
  if (fill.isInt() || fill.isSymInt()) dtype = c10::kLong;
  if (fill.isComplexDouble()) dtype = c10::toComplexType(dtype);
  return {result(call, call.sym_ints(0), call.dtype_or(2, dtype))};
}

// new_empty(self, size, [fill_value,] dtype, ...)
template <std::size_t dtype>
Outputs new_of_sizes(const Call& call) {
  return {result(call, call.sym_ints(1), call.dtype_or(dtype, call.tensor(0).scalar_type()))};
}

Outputs empty_strided(const Call& call) {
  return {result(call, Layout{call.sym_ints(0), call.sym_ints(1)},
                 call.dtype_or(2, at::get_default_dtype_as_scalartype()))};
}

Outputs new_empty_strided(const Call& call) {
  return {result(call, Layout{call.sym_ints(1), call.sym_ints(2)}, call.dtype_or(3, call.tensor(0).scalar_type()))};
}

std::optional<c10::SymInt> as_integer(const c10::IValue& value) {
  if (value.isInt()) return value.toInt();
  if (value.isSymInt()) return value.toSymInt();
  return std::nullopt;
}

// The length of the range. If an argument is a float, uses LibTorch's own formula.
c10::SymInt range_length(const c10::IValue& start, const c10::IValue& end, const c10::IValue& step) {
  const auto first = as_integer(start), last = as_integer(end), by = as_integer(step);
  if (!first || !last || !by) {
    const double size = (end.toScalar().toDouble() - start.toScalar().toDouble()) / step.toScalar().toDouble();
    return static_cast<std::int64_t>(std::ceil(size));
  }
  const std::int64_t width = by->guard_int(__FILE__, __LINE__);
  TORCH_CHECK(width != 0, "step must be nonzero");
  TORCH_SYM_CHECK(width > 0 ? first->sym_le(*last) : last->sym_le(*first),
                  "upper bound and lower bound inconsistent with step sign");
  const c10::SymInt distance = width > 0 ? *last - *first : *first - *last;
  const std::int64_t magnitude = std::abs(width);
  return magnitude == 1 ? distance : (distance + (magnitude - 1)) / magnitude;
}

Outputs range(const Call& call, const c10::IValue& start, const c10::IValue& end, const c10::IValue& step,
              std::size_t dtype_argument) {
  const bool integral = as_integer(start) && as_integer(end) && as_integer(step);
  const c10::ScalarType usual = integral ? c10::kLong : at::get_default_dtype_as_scalartype();
  const c10::ScalarType dtype = call.dtype_or(dtype_argument, usual);
  const bool rounds = libtorch::kRoundsRangesOfInt64 && dtype == c10::kLong;
  const auto rounded = [rounds](const c10::IValue& value) {
    return rounds && value.isDouble() ? c10::IValue(value.toScalar().toLong()) : value;
  };
  return {result(call, SymInts{range_length(rounded(start), rounded(end), rounded(step))}, dtype)};
}

Outputs arange(const Call& call) {
  return range(call, c10::IValue(std::int64_t{0}), call.arguments[0], c10::IValue(std::int64_t{1}), 1);
}
Outputs arange_start(const Call& call) {
  return range(call, call.arguments[0], call.arguments[1], c10::IValue(std::int64_t{1}), 2);
}
Outputs arange_step(const Call& call) {
  return range(call, call.arguments[0], call.arguments[1], call.arguments[2], 3);
}

// eye(n, dtype, ...), eye.m(n, m, dtype, ...)
Outputs eye(const Call& call) {
  return {
      result(call, SymInts{call.sym_int(0), call.sym_int(0)}, call.dtype_or(1, at::get_default_dtype_as_scalartype()))};
}
Outputs eye_m(const Call& call) {
  return {
      result(call, SymInts{call.sym_int(0), call.sym_int(1)}, call.dtype_or(2, at::get_default_dtype_as_scalartype()))};
}

// generator_state(device): the state of the device's default generator, a byte tensor in CPU memory.
Outputs generator_state(const Call& call) {
  const at::Tensor state = at::globalContext().defaultGenerator(call.arguments[0].toDevice()).get_state();
  TensorSpec spec = result(call, SymInts{state.numel()}, state.scalar_type());
  spec.device = state.device();
  return {spec};
}

constexpr std::pair<const std::string_view, Rule> kFactoryRules[] = {
    {"aten::empty.memory_format", empty},
    {"aten::empty_strided", empty_strided},
    {"aten::zeros", of_sizes<1>},
    {"aten::ones", of_sizes<1>},
    {"aten::rand", of_sizes<1>},
    {"aten::rand.generator", of_sizes<2>},
    {"aten::randn", of_sizes<1>},
    {"aten::randn.generator", of_sizes<2>},
    {"aten::randint", of_sizes<2, 1>},
    {"aten::randint.low", of_sizes<3, 2>},
    {"aten::full", full},
    {"aten::new_empty", new_of_sizes<2>},
    {"aten::new_zeros", new_of_sizes<2>},
    {"aten::new_ones", new_of_sizes<2>},
    {"aten::new_full", new_of_sizes<3>},
    {"aten::new_empty_strided", new_empty_strided},
    {"aten::arange", arange},
    {"aten::arange.start", arange_start},
    {"aten::arange.start_step", arange_step},
    {"aten::eye", eye},
    {"aten::eye.m", eye_m},
    {"rehearse::generator_state", generator_state},
};

}  // namespace

RuleTable factory_rules() { return kFactoryRules; }

}  // namespace rehearse::capture
