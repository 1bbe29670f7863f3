// SPDX-License-Identifier: BSD-3-Clause
#include "compile/guards/saved_state.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/ScalarType.h>

namespace rehearse::compiler {
namespace {

constexpr std::array kDevices = {at::kCPU, at::kCUDA};

GlobalState with_module_modes() {
  GlobalState state = GlobalState::current();
  state.module_modes = module_modes();
  return state;
}

void set_attention(const std::array<bool, 4>& attention) {
  at::Context& context = at::globalContext();
  context.setSDPUseFlash(attention[0]);
  context.setSDPUseMemEfficient(attention[1]);
  context.setSDPUseMath(attention[2]);
  context.setSDPUseCuDNN(attention[3]);
}

}  // namespace

SavedState::SavedState()
    : state_(with_module_modes()),
      keys_(c10::impl::tls_local_dispatch_key_set()),
      autograd_(c10::AutogradState::get_tls_state()),
      autocast_dtypes_{at::autocast::get_autocast_dtype(kDevices[0]), at::autocast::get_autocast_dtype(kDevices[1])} {}

std::optional<GuardFailure> SavedState::change() const {
  if (const GlobalState now = with_module_modes(); now != state_) return difference(state_, now);
  for (std::size_t i = 0; i < kDevices.size(); ++i) {
    const c10::ScalarType before = autocast_dtypes_[i], now = at::autocast::get_autocast_dtype(kDevices[i]);
    if (before == now) continue;
    return GuardFailure{"autocast's dtype on " + std::string(i == 0 ? "CPU" : "CUDA"), c10::toString(before),
                        c10::toString(now), ""};
  }
  return std::nullopt;
}

std::string SavedState::restore() {
  c10::impl::_force_tls_local_dispatch_key_set(keys_);
  c10::AutogradState::set_tls_state(autograd_);
  for (std::size_t i = 0; i < kDevices.size(); ++i) at::autocast::set_autocast_dtype(kDevices[i], autocast_dtypes_[i]);
  at::autocast::set_autocast_cache_enabled(state_.autocast_cache);
  c10::set_default_dtype(c10::scalarTypeToTypeMeta(state_.default_dtype));
  at::globalContext().setDeterministicAlgorithms(state_.deterministic, state_.deterministic_warns_only);
  set_attention(state_.attention);
  return modules_.undo();
}

}  // namespace rehearse::compiler
