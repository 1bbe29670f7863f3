// SPDX-License-Identifier: BSD-3-Clause
// Sampling is right if the kernel treats other sizes as it treats the small sizes. Tests have shown this for the
// operators that may be sampled (sampled_operators.h). For other operators, only the Meta kernel runs, and only at the
// sizes of the call.
#include <algorithm>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>

#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <rehearse_internal/capture/fake_errors.h>
#include <rehearse_internal/capture/sampled_operators.h>
#include <rehearse_internal/shapes/shape_env.h>
#include <rehearse_internal/shapes/sym_node.h>
#include "capture/fake/infer/below_autograd.h"
#include "capture/fake/infer/fixed_generator.h"
#include "capture/fake/infer/infer.h"
#include "capture/fake/infer/sampling.h"
#include "capture/fake/infer/stand_ins.h"

namespace rehearse::capture {
namespace {

constexpr std::size_t kSamples = 12;
constexpr std::int64_t kElementsMax = std::int64_t{1} << 24;  // for one stand-in, which takes real memory

[[noreturn]] void give_up(const Call& call, const std::string& reason) {
  throw UnknownShape(call.facts.name, reason, exec::CallSite::capture());
}

std::int64_t number_at(const c10::SymInt& value, const Assignment& values) {
  if (const auto plain = value.maybe_as_int()) return *plain;
  return value_at(shapes::expr_of(value), values);
}

std::vector<std::int64_t> numbers_at(c10::SymIntArrayRef all, const Assignment& values) {
  std::vector<std::int64_t> numbers;
  for (const c10::SymInt& value : all) numbers.push_back(number_at(value, values));
  return numbers;
}

// The made-up numbers in a real tensor. Equal: all 0.5 or, if the dtype is integral, 0, because 0 is a valid index into
// everything that is not empty. Mixed: one is added to some of them.
enum class Numbers { Equal, Mixed };

// Zeros and ones in an order without a period. With a period, all rows of a tensor could be equal. The first one is 1.
at::Tensor mixed_bits(std::int64_t count) {
  at::Tensor bits = at::empty({count}, c10::kByte);
  auto* const bit = bits.mutable_data_ptr<std::uint8_t>();
  for (std::int64_t i = 0; i < count; ++i) {
    bit[i] = static_cast<std::uint8_t>((static_cast<std::uint64_t>(i + 1) * 0x9E3779B97F4A7C15u) >> 63U);
  }
  return bits;
}

at::Tensor real_like(const Call& call, const at::Tensor& fake, const Assignment& values, Numbers numbers) {
  const std::vector<std::int64_t> sizes = numbers_at(fake.sym_sizes(), values);
  const std::vector<std::int64_t> strides = numbers_at(fake.sym_strides(), values);
  const std::int64_t offset = number_at(fake.sym_storage_offset(), values);
  std::int64_t elements = offset + 1;
  for (std::size_t d = 0; d < sizes.size(); ++d) elements += std::max<std::int64_t>(sizes[d] - 1, 0) * strides[d];
  if (elements > kElementsMax) give_up(call, "it has no rule, and its sizes are too large to be tried");
  const c10::ScalarType dtype = fake.scalar_type();
  const c10::Scalar fill = c10::isIntegralType(dtype, true) ? c10::Scalar(0) : c10::Scalar(0.5);
  at::Tensor storage = at::full({elements}, fill, at::TensorOptions(dtype));
  if (numbers == Numbers::Mixed) storage = at::add(storage, mixed_bits(elements)).to(dtype);
  at::Tensor made = storage.as_strided(sizes, strides, offset);
  if (fake.unsafeGetTensorImpl()->is_wrapped_number()) made.unsafeGetTensorImpl()->set_wrapped_number(true);
  return made;
}

c10::IValue with_numbers(const c10::IValue& value, const Assignment& values) {
  if (value.isSymInt()) return number_at(value.toSymInt(), values);
  if (!value.isList() || value.isTensorList() || value.isOptionalTensorList()) return value;
  const auto items = value.toListRef();
  if (items.empty() || !has_symbols(value)) return value;
  std::vector<std::int64_t> numbers;
  for (const c10::IValue& item : items) numbers.push_back(number_at(item.toSymInt(), values));
  return numbers;
}

at::Tensor meta_at(const at::Tensor& fake, const Assignment& values) {
  TensorSpec spec = spec_of(fake);
  for (c10::SymInt& size : spec.sizes) size = number_at(size, values);
  for (c10::SymInt& stride : spec.strides) stride = number_at(stride, values);
  spec.storage_offset = number_at(spec.storage_offset, values);
  spec.requires_grad = false;
  return meta_like(make_fake(spec));
}

// A library behind a kernel (oneDNN) throws errors that are no c10::Error.
void call_kernel(const Call& call, torch::jit::Stack& stack) {
  try {
    call.facts.handle.callBoxed(stack);
  } catch (const c10::Error&) {
    throw;
  } catch (const std::exception& error) {
    TORCH_CHECK(false, error.what());
  }
}

Outputs run_kernel_at(const Call& call, const Assignment& values, bool on_meta, Numbers numbers = Numbers::Equal) {
  const BelowAutograd guard;
  const FixedGenerator no_draw(call.facts.is_random);
  StandIns stand_ins(
      [&](const at::Tensor& fake) { return on_meta ? meta_at(fake, values) : real_like(call, fake, values, numbers); });
  torch::jit::Stack stack = stand_ins.arguments_of(call, c10::Device(on_meta ? c10::kMeta : c10::kCPU));
  for (c10::IValue& value : stack) value = with_numbers(value, values);
  call_kernel(call, stack);
  return outputs_of(call.facts, stack, device_of(call));
}

// The tensors of all outputs, in order, without undefined ones.
std::vector<TensorSpec*> tensors_of(Outputs& outputs) {
  std::vector<TensorSpec*> specs;
  for (Output& output : outputs) {
    if (auto* const spec = std::get_if<TensorSpec>(&output.value)) specs.push_back(spec);
    if (auto* const list = std::get_if<std::vector<TensorSpec>>(&output.value)) {
      for (TensorSpec& spec : *list) specs.push_back(&spec);
    }
  }
  return specs;
}

bool same_sizes(const std::vector<TensorSpec*>& left, const std::vector<TensorSpec*>& right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [](const TensorSpec* one, const TensorSpec* other) { return one->sizes == other->sizes; });
}

// Throws DataDependentRead if other numbers give results of other sizes. A kernel that refuses the other numbers, for
// example as indices, proves nothing.
void require_sizes_without_data(const Call& call, const Assignment& values, Outputs& with_equal_numbers) {
  Outputs with_mixed;
  try {
    with_mixed = run_kernel_at(call, values, false, Numbers::Mixed);
  } catch (const c10::Error&) {
    return;
  }
  if (!same_sizes(tensors_of(with_equal_numbers), tensors_of(with_mixed))) {
    throw DataDependentRead(call.facts.name, exec::CallSite::capture());
  }
}

// The numbers in the tensors are made up, so an error of the kernel is not an error of the user's call.
Outputs run_on_numbers_at(const Call& call, const Assignment& values) {
  try {
    Outputs outputs = run_kernel_at(call, values, false);
    require_sizes_without_data(call, values, outputs);
    return outputs;
  } catch (const c10::Error& error) {
    give_up(call, std::string("it has no rule, and its kernel refuses tensors of made-up numbers: ") +
                      error.what_without_backtrace());
  }
}

// Prefers Meta, which needs no memory.
Outputs run_at(const Call& call, const Assignment& values) {
  if (call.facts.has_meta_kernel) {
    try {
      return run_kernel_at(call, values, true);
    } catch (const c10::NotImplementedError&) {  // the Meta kernel calls an operator without a Meta kernel
    }
  }
  return run_on_numbers_at(call, values);
}

// The sizes are not those of the user's call, so an error here is not the user's error.
Outputs run_sample_at(const Call& call, const Assignment& values) {
  try {
    return run_at(call, values);
  } catch (const c10::Error& error) {
    give_up(call, std::string("it has no rule, and refuses other sizes: ") + error.what_without_backtrace());
  }
}

struct Samples {
  CallSymbols symbols;
  std::vector<Assignment> assignments;
  std::vector<std::vector<TensorSpec*>> specs;  // one list for each assignment
};

c10::SymInt fitted(const Call& call, const Samples& samples, std::size_t tensor,
                   const std::function<c10::SymInt(const TensorSpec&)>& get) {
  std::vector<std::int64_t> values;
  for (const auto& specs : samples.specs) values.push_back(get(*specs[tensor]).expect_int());
  const auto expr = fit(values, samples.assignments, samples.symbols);
  if (!expr) give_up(call, "it has no rule, and what it gives at several sizes fits no expression");
  return shapes::to_sym_int(call.mode.shapes(), *expr);
}

void fit_tensor(const Call& call, const Samples& samples, std::size_t tensor) {
  TensorSpec& spec = *samples.specs.front()[tensor];
  TensorSpec fitted_spec = spec;
  for (const auto& specs : samples.specs) {
    if (specs[tensor]->sizes.size() != spec.sizes.size()) give_up(call, "its number of dimensions depends on sizes");
  }
  for (std::size_t d = 0; d < spec.sizes.size(); ++d) {
    fitted_spec.sizes[d] = fitted(call, samples, tensor, [d](const TensorSpec& one) { return one.sizes[d]; });
    fitted_spec.strides[d] = fitted(call, samples, tensor, [d](const TensorSpec& one) { return one.strides[d]; });
  }
  fitted_spec.storage_offset = fitted(call, samples, tensor, [](const TensorSpec& one) { return one.storage_offset; });
  spec = std::move(fitted_spec);
}

// Turns the call's sizes into guards: from here on, inferred results hold only for these sizes. Returns the values of
// the symbols in this call, because a guard on a quotient fixes no symbol.
Assignment specialise(const Call& call) {
  const CallSymbols symbols = symbols_of(call);
  Assignment values;
  for (const std::string& name : symbols.names) values.emplace(name, call.mode.shapes()->hints()(name).value());
  for (const shapes::Expr& expression : symbols.expressions) {
    shapes::to_sym_int(call.mode.shapes(), expression).guard_int(call.facts.name.c_str(), 0);
  }
  return values;
}

bool has_unbacked(const CallSymbols& symbols) {
  return std::any_of(symbols.names.begin(), symbols.names.end(), shapes::is_unbacked_name);
}

Outputs fitted_outputs(const Call& call, CallSymbols symbols) {
  Samples samples{std::move(symbols), {}, {}};
  samples.assignments = assignments_for(samples.symbols, *call.mode.shapes(), kSamples);
  if (samples.assignments.size() < 2) give_up(call, "it has no rule, and no other sizes satisfy the guards");
  std::vector<Outputs> all;
  for (const Assignment& values : samples.assignments) all.push_back(run_sample_at(call, values));
  for (Outputs& outputs : all) {
    samples.specs.push_back(tensors_of(outputs));
    if (samples.specs.back().size() != samples.specs.front().size()) give_up(call, "how many tensors it gives varies");
  }
  for (std::size_t i = 0; i < samples.specs.front().size(); ++i) fit_tensor(call, samples, i);
  return std::move(all.front());
}

[[noreturn]] void refuse_by_name(const Call& call) {
  give_up(call,
          "it has no rule, and nothing has tested that its kernel does the same at all sizes and with all numbers. "
          "Register a kernel for Meta tensors (TORCH_LIBRARY_IMPL) if it is yours");
}

Outputs infer_at_the_sizes(const Call& call) {
  if (!call.facts.has_meta_kernel || has_unbacked(symbols_of(call))) refuse_by_name(call);
  const Assignment values = specialise(call);
  try {
    return run_kernel_at(call, values, true);
  } catch (const c10::NotImplementedError&) {
    refuse_by_name(call);
  }
}

}  // namespace

Outputs infer_by_sampling(const Call& call) {
  ++call.mode.inference_counts().sampled_operators[call.facts.name];
  if (!may_be_sampled(call.facts.name)) return infer_at_the_sizes(call);
  CallSymbols symbols = symbols_of(call);
  if (symbols.names.empty()) return run_at(call, {});
  if (has_unbacked(symbols)) return fitted_outputs(call, std::move(symbols));
  try {
    return fitted_outputs(call, std::move(symbols));
  } catch (const UnknownShape&) {
    return run_at(call, specialise(call));
  }
}

}  // namespace rehearse::capture
