// SPDX-License-Identifier: BSD-3-Clause
#include "compile/guards/global_state.h"

#include <string>

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>

namespace rehearse::compiler {
namespace {

std::string on_or_off(bool value) { return value ? "on" : "off"; }

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

GlobalState GlobalState::current() {
  GlobalState state;
  state.grad_mode = c10::GradMode::is_enabled();
  state.inference_mode = c10::InferenceMode::is_enabled();
  constexpr std::array kDevices = {at::kCPU, at::kCUDA};
  for (std::size_t i = 0; i < kDevices.size(); ++i) {
    state.autocast[i] = at::autocast::is_autocast_enabled(kDevices[i]);
    if (state.autocast[i]) state.autocast_dtype[i] = at::autocast::get_autocast_dtype(kDevices[i]);
  }
  state.autocast_cache = at::autocast::is_autocast_cache_enabled();
  state.deterministic = at::globalContext().deterministicAlgorithms();
  state.deterministic_warns_only = at::globalContext().deterministicAlgorithmsWarnOnly();
  state.default_dtype = c10::get_default_dtype_as_scalartype();
  const at::Context& context = at::globalContext();
  state.attention = {context.userEnabledFlashSDP(), context.userEnabledMemEfficientSDP(), context.userEnabledMathSDP(),
                     context.userEnabledCuDNNSDP()};
  return state;
}

bool hides_autograd() noexcept {
  const c10::impl::LocalDispatchKeySet keys = c10::impl::tls_local_dispatch_key_set();
  const bool infers = c10::InferenceMode::is_enabled();
  const c10::DispatchKeySet usual = infers ? c10::autograd_dispatch_keyset : c10::DispatchKeySet();
  return (keys.excluded_ & c10::autograd_dispatch_keyset_with_ADInplaceOrView) != usual ||
         keys.included_.has(c10::DispatchKey::ADInplaceOrView) == infers;
}

GuardFailure difference(const GlobalState& expected, const GlobalState& found) {
  if (expected.types != found.types) {
    return {"the types of the arguments", "those of the capture", "others", ""};
  }
  const auto flag = [](std::string name, bool was, bool is) {
    return GuardFailure{std::move(name), on_or_off(was), on_or_off(is), ""};
  };
  const auto dtype = [](std::string name, c10::ScalarType was, c10::ScalarType is) {
    return GuardFailure{std::move(name), c10::toString(was), c10::toString(is), ""};
  };
  if (expected.grad_mode != found.grad_mode) return flag("grad mode", expected.grad_mode, found.grad_mode);
  if (expected.inference_mode != found.inference_mode) {
    return flag("inference mode", expected.inference_mode, found.inference_mode);
  }
  for (std::size_t i = 0; i < expected.autocast.size(); ++i) {
    const std::string device = i == 0 ? "CPU" : "CUDA";
    if (expected.autocast[i] != found.autocast[i]) {
      return flag("autocast on " + device, expected.autocast[i], found.autocast[i]);
    }
    if (expected.autocast_dtype[i] != found.autocast_dtype[i]) {
      return dtype("autocast's dtype on " + device, expected.autocast_dtype[i], found.autocast_dtype[i]);
    }
  }
  if (expected.autocast_cache != found.autocast_cache) {
    return flag("autocast's cache", expected.autocast_cache, found.autocast_cache);
  }
  if (expected.default_dtype != found.default_dtype) {
    return dtype("default dtype", expected.default_dtype, found.default_dtype);
  }
  if (expected.deterministic != found.deterministic) {
    return flag("deterministic algorithms", expected.deterministic, found.deterministic);
  }
  constexpr std::array kAttention = {"flash attention", "efficient attention", "attention by math",
                                     "cuDNN's attention"};
  for (std::size_t i = 0; i < kAttention.size(); ++i) {
    if (expected.attention[i] != found.attention[i]) {
      return flag(kAttention[i], expected.attention[i], found.attention[i]);
    }
  }
  if (expected.module_modes != found.module_modes) {
    const std::string now = "others (last: " + last_mode_switch() + ")";
    return {"train() and eval() of modules", "the modes of the capture", now, ""};
  }
  return flag("warnings for deterministic algorithms", expected.deterministic_warns_only,
              found.deterministic_warns_only);
}

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
