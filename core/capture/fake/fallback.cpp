// SPDX-License-Identifier: BSD-3-Clause
#include "capture/fake/fallback.h"

#include <string>
#include <utility>

#include <ATen/core/List.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <torch/library.h>

#include <rehearse_internal/capture/fake_errors.h>
#include <rehearse_internal/capture/fake_mode.h>
#include <rehearse_internal/libtorch/version.h>
#include <rehearse_internal/torch_state/torch_state_error.h>

#include "capture/fake/call/operator_call.h"
#include "capture/fake/fake_impl.h"
#include "capture/fake/infer/infer.h"
#include "capture/fake/never_destroyed.h"

namespace rehearse::capture {
namespace {

using torch::jit::Stack;

template <class Item>
c10::List<Item> list_of_fakes(FakeMode& mode, const c10::List<Item>& items) {
  c10::List<Item> fakes;
  fakes.reserve(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Item& item = items.get(i);
    if constexpr (std::is_same_v<Item, at::Tensor>) {
      fakes.push_back(mode.fake_of(item));
    } else {
      fakes.push_back(item ? std::optional(mode.fake_of(*item)) : std::nullopt);
    }
  }
  return fakes;
}

bool is_real(const at::Tensor& tensor) { return tensor.defined() && !is_fake(tensor); }

bool has_real(const c10::IValue& value) {
  bool found = false;
  for_each_tensor(value, [&](const at::Tensor& tensor) { found = found || is_real(tensor); });
  return found;
}

c10::IValue with_fakes(FakeMode& mode, const c10::IValue& value) {
  if (value.isTensor()) return mode.fake_of(value.toTensor());
  if (!value.isList() || !has_real(value)) return value;
  if (value.isTensorList()) return list_of_fakes(mode, value.toTensorList());
  return list_of_fakes(mode, value.toOptionalTensorList());
}

// A fake always has the layout kStrided.
void check_layout(const Call& call) {
  const auto& index = call.facts.layout_argument;
  if (!index || call.arguments[*index].isNone() || call.arguments[*index].toLayout() == c10::kStrided) return;
  throw UnknownShape(call.facts.name, "it is not dense", exec::CallSite::capture());
}

// Eager mode refuses negative sizes. If only the running program knows the size, the graph checks it.
void check_sizes(const Call& call, const TensorSpec& spec) {
  for (const c10::SymInt& size : spec.sizes) {
    if (!size.is_symbolic() || size.has_hint()) continue;
    TORCH_SYM_CHECK(size.sym_ge(0), call.facts.name, ": a size of the result is ", size, ", which may be negative");
  }
}

void check_sizes(const Call& call, const Outputs& outputs) {
  for (const Output& output : outputs) {
    if (const auto* const spec = std::get_if<TensorSpec>(&output.value)) check_sizes(call, *spec);
    const auto* const specs = std::get_if<std::vector<TensorSpec>>(&output.value);
    if (specs == nullptr) continue;
    for (const TensorSpec& spec : *specs) check_sizes(call, spec);
  }
}

// If the operator returns an argument, returns the fake of that argument.
c10::IValue result_of(const Call& call, std::size_t i, const Output& output) {
  const ReturnFacts& facts = call.facts.returns[i];
  const auto* const spec = std::get_if<TensorSpec>(&output.value);
  if (facts.is_argument) {
    const c10::IValue& argument = call.arguments[*facts.alias_of];
    if (spec) fake_impl(argument.toTensor())->set_geometry(spec->sizes, spec->strides, spec->storage_offset);
    return argument;
  }
  const bool is_view = facts.alias_of && call.arguments[*facts.alias_of].isTensor();
  const at::Tensor alias_of = is_view ? call.tensor(*facts.alias_of) : at::Tensor();
  if (spec) return make_fake(*spec, alias_of);
  if (const auto* const specs = std::get_if<std::vector<TensorSpec>>(&output.value)) {
    c10::List<at::Tensor> list;
    for (const TensorSpec& item : *specs) list.push_back(make_fake(item, alias_of));
    return list;
  }
  if (const auto* const other = std::get_if<c10::IValue>(&output.value)) return *other;
  return at::Tensor();
}

void run_on_fakes(FakeMode& mode, const OperatorFacts& facts, Stack& stack) {
  const std::size_t first = stack.size() - facts.arguments;
  Stack arguments;
  arguments.reserve(facts.arguments);
  for (std::size_t i = first; i < stack.size(); ++i) arguments.push_back(with_fakes(mode, stack[i]));
  const Call call{facts, arguments, mode};
  check_layout(call);
  const Outputs outputs = infer(call);
  check_sizes(call, outputs);
  Stack results;
  results.reserve(outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) results.push_back(result_of(call, i, outputs[i]));
  if (mode.listener()) mode.listener()->on_operator(facts.handle, arguments, results);
  for (std::size_t i = 0; i < results.size(); ++i) {  // returned arguments are the very objects that the caller passed
    if (facts.returns[i].is_argument) results[i] = stack[first + *facts.returns[i].alias_of];
  }
  stack.resize(first);
  for (c10::IValue& result : results) stack.push_back(std::move(result));
}

// Since 2.14, LibTorch has the key for fake tensors of its own, and nothing uses it yet.
void require_free_key() {
  if (!c10::Dispatcher::singleton().hasBackendFallbackForDispatchKey(c10::DispatchKey::Fake)) return;
  using torch_state::TorchStateError;
  throw TorchStateError(
      TorchStateError::Reason::version_differs, "",
      "LibTorch " + std::string(libtorch::kVersion) +
          ", or a library of this program, has a fallback of its own for the dispatch key Fake, so "
          "rehearse::compile() cannot capture anything. Use another LibTorch, or leave compile() out");
}

void fake_fallback(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  FakeMode* const mode = FakeMode::current();
  if (!mode) return call_without_mode(op, keys, *stack);
  call_on_fakes(*mode, op, keys, *stack);
}

}  // namespace

void call_on_fakes(FakeMode& mode, const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack& stack) {
  const OperatorFacts& facts = facts_of(op);
  if (facts.is_composite) {  // its parts reach this fallback again
    op.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, c10::DispatchKey::Fake), &stack);
    return;
  }
  run_on_fakes(mode, facts, stack);
}

void register_fake_fallback() {
  static const NeverDestroyed<torch::Library> library([] {
    require_free_key();
    torch::Library made(torch::Library::IMPL, "_", c10::DispatchKey::Fake, __FILE__, __LINE__);
    made.fallback(torch::CppFunction::makeFromBoxedFunction<&fake_fallback>());
    return made;
  });
}

}  // namespace rehearse::capture
