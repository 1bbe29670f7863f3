// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/operators/seen_operators.h>

#include <algorithm>
#include <utility>

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <dlfcn.h>
#include <torch/csrc/jit/serialization/pickler_helper.h>
#include <torch/library.h>

#include <rehearse_internal/exec/fiber_local.h>

#include "operators/composite.h"

namespace rehearse::operators {
namespace {

constexpr auto kKey = c10::DispatchKey::TESTING_ONLY_GenericWrapper;
constexpr c10::DispatchKeySet kBelow(c10::DispatchKeySet::FULL_AFTER, kKey);

const exec::FiberLocal<const SeenOperators::Watchers*> g_watchers;
const exec::FiberLocal<int> g_unseen;  // number of living UnseenOperators of the fiber

// True for operators on fakes, in a capture, and on Meta tensors.
bool computes_nothing(c10::DispatchKeySet keys) {
  return keys.has(c10::DispatchKey::Fake) || keys.has(c10::DispatchKey::DeferredInit) ||
         keys.has(c10::DispatchKey::Meta);
}

bool communicates(const c10::OperatorHandle& op) {
  const auto& name = op.operator_name().name;
  return name.starts_with("c10d::") || name.starts_with("_c10d_functional::") ||
         name.starts_with("_c10d_functional_autograd::");
}

// True if the operator runs no code of the user's. Only the user's code could make an idle watcher want to see
// operators, so idle watchers need not see what such an operator calls.
bool makes_no_calls(const c10::OperatorHandle& op) {
  const auto& name = op.operator_name().name;
  return name.starts_with("aten::") && name != "aten::_backward";
}

void see_operator(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const auto* const* const found = g_watchers.find();
  if (found == nullptr || *found == nullptr) return op.redispatchBoxed(keys & kBelow, stack);
  const auto& watchers = **found;
  if (makes_no_calls(op) && std::ranges::all_of(watchers, [](const auto& each) { return each->is_idle(); })) {
    const c10::impl::ExcludeDispatchKeyGuard whatever_it_calls(kKey);
    return op.redispatchBoxed(keys & kBelow, stack);
  }
  const bool unseen = computes_nothing(keys) || communicates(op);
  if (!unseen && is_composite(op)) return op.redispatchBoxed(keys & kBelow, stack);
  const c10::impl::ExcludeDispatchKeyGuard whatever_it_calls(kKey);
  if (unseen) return op.redispatchBoxed(keys & kBelow, stack);
  const auto& schema = op.schema();
  for (const auto& watcher : watchers) watcher->before(op, torch::jit::last(*stack, schema.arguments().size()));
  op.redispatchBoxed(keys & kBelow, stack);
  for (const auto& watcher : watchers) watcher->after(torch::jit::last(*stack, schema.returns().size()));
}

}  // namespace

// Not when a program begins, so that others do not pay for it.
void SeenOperators::prepare() {
  static torch::Library library(torch::Library::IMPL, "_", kKey, __FILE__, __LINE__);
  static const bool registered = (library.fallback(torch::CppFunction::makeFromBoxedFunction<&see_operator>()), true);
  static_cast<void>(registered);
}

SeenOperators::SeenOperators(Watchers watchers) : watchers_(std::move(watchers)) {
  if (watchers_.empty()) return;
  prepare();
  *g_watchers = &watchers_;
  key_.emplace(kKey);
}

SeenOperators::~SeenOperators() {
  if (key_) *g_watchers = nullptr;
}

UnseenOperators::UnseenOperators() : key_(kKey) { ++*g_unseen; }

UnseenOperators::~UnseenOperators() { --*g_unseen; }

bool are_unseen() {
  const int* const times = g_unseen.find();
  return times != nullptr && *times > 0;
}

namespace {

void see_save(const at::Tensor& tensor) {
  const auto* const* const found = g_watchers.find();
  if (found == nullptr || *found == nullptr || are_unseen()) return;
  for (const auto& watcher : **found) watcher->save(tensor);
}

}  // namespace
}  // namespace rehearse::operators

// Replaces LibTorch's function (an executable's definition precedes that of a library), and calls it. Everything that
// pickles tensors gets their bytes from here.
torch::jit::WriteableTensorData torch::jit::getWriteableTensorData(const at::Tensor& tensor, bool to_cpu) {
  static const auto next = reinterpret_cast<decltype(&getWriteableTensorData)>(
      dlsym(RTLD_NEXT, "_ZN5torch3jit22getWriteableTensorDataERKN2at6TensorEb"));
  rehearse::operators::see_save(tensor);
  return next(tensor, to_cpu);
}
