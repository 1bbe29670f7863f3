// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/checks/operator_watch.h>

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <rehearse/checks/unwatched.h>
#include <rehearse/exec/fiber_local.h>

#include "checks/watch/rank_watch.h"

namespace rehearse::checks {
namespace {

// Beside the key at which a model of computing counts operators: either may be there without the other.
constexpr auto kKey = c10::DispatchKey::TESTING_ONLY_GenericWrapper;
constexpr c10::DispatchKeySet kBelow(c10::DispatchKeySet::FULL_AFTER, kKey);

const exec::FiberLocal<RankWatch*> g_watch;

// Made of other operators, which come here by themselves.
bool is_made_of_others(const c10::OperatorHandle& op) {
  return op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) &&
         !op.hasKernelForDispatchKey(c10::DispatchKey::CPU) &&
         !op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd);
}

// On fakes, in a capture, and on tensors without data.
bool has_no_data(c10::DispatchKeySet keys) {
  return keys.has(c10::DispatchKey::Fake) || keys.has(c10::DispatchKey::DeferredInit) ||
         keys.has(c10::DispatchKey::Meta);
}

// Collectives are seen where they are carried out.
bool is_communication(const c10::OperatorHandle& op) {
  const auto& name = op.operator_name().name;
  return name.starts_with("c10d::") || name.starts_with("_c10d_functional::");
}

void watch_operator(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  RankWatch* const* const watch = g_watch.find();
  const bool nobody = watch == nullptr || *watch == nullptr;
  if (nobody || is_made_of_others(op)) return op.redispatchBoxed(keys & kBelow, stack);
  const c10::impl::ExcludeDispatchKeyGuard whatever_it_calls(kKey);
  if (has_no_data(keys) || is_communication(op)) return op.redispatchBoxed(keys & kBelow, stack);
  const auto& schema = op.schema();
  std::optional<WatchedCall> call;
  {
    const Unwatched own;
    call.emplace((*watch)->before(schema, torch::jit::last(*stack, schema.arguments().size())));
  }
  op.redispatchBoxed(keys & kBelow, stack);
  const Unwatched own;
  (*watch)->after(*call, torch::jit::last(*stack, schema.returns().size()));
}

// Once a process: programs that never ask for it do not pay for it.
void register_watch() {
  static torch::Library library(torch::Library::IMPL, "_", kKey, __FILE__, __LINE__);
  static const bool registered = (library.fallback(torch::CppFunction::makeFromBoxedFunction<&watch_operator>()), true);
  static_cast<void>(registered);
}

}  // namespace

OperatorWatch::OperatorWatch(RankWatch* watch) {
  if (watch == nullptr) return;
  register_watch();
  *g_watch = watch;
  key_.emplace(kKey);
}

OperatorWatch::~OperatorWatch() {
  if (key_) *g_watch = nullptr;
}

}  // namespace rehearse::checks
