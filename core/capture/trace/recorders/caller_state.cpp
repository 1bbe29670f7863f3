// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/recorders/caller_state.h"

#include <ATen/Context.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/graph_task.h>

#include <rehearse_internal/capture/errors.h>
#include <rehearse_internal/comm/call_label.h>
#include <rehearse_internal/exec/check.h>

#include "capture/trace/caller/call_stack.h"
#include "capture/trace/operators/treatment.h"

namespace rehearse::capture {
namespace {

// The keys of autograd that this thread excludes, and ADInplaceOrView if this thread does not include it.
c10::DispatchKeySet autograd_keys() {
  const c10::impl::LocalDispatchKeySet keys = c10::impl::tls_local_dispatch_key_set();
  const c10::DispatchKeySet excluded = keys.excluded_ & c10::autograd_dispatch_keyset_with_ADInplaceOrView;
  const bool has_views = keys.included_.has(c10::DispatchKey::ADInplaceOrView);
  return has_views ? excluded : excluded.add(c10::DispatchKey::ADInplaceOrView);
}

}  // namespace

void CallerState::begin(const void* outside) {
  REHEARSE_CHECK(!modes_.has_value(), label_);
  modes_.emplace();
  outside_ = outside;
  backward_ = torch::autograd::get_current_graph_task_id();
  if (const std::string* const label = comm::current_label()) label_ = *label;
  process_modes_ = ProcessModes::current();
  inference_mode_ = c10::InferenceMode::is_enabled();
  autograd_keys_ = autograd_keys();
}

const CallModes& CallerState::modes() const {
  REHEARSE_CHECK(modes_.has_value(), label_);
  return *modes_;
}

bool CallerState::has_called(std::initializer_list<std::string_view> prefixes) const {
  return is_called_by_libtorch(outside_, prefixes);
}

bool CallerState::is_in_gradients() const {
  return has_called({"_ZN5torch8autograd4gradE", "_ZN5torch8autograd8backwardE"});
}

bool CallerState::runs_backward() const { return torch::autograd::get_current_graph_task_id() != backward_; }

void CallerState::check(const exec::CallSite& site) const {
  if (runs_backward()) throw NotCapturable(kGradientsInside, kCallOutside, site);
  if (c10::InferenceMode::is_enabled() != inference_mode_) {
    throw NotCapturable("inference mode changes inside of a captured function",
                        "Use a NoGradGuard there, or turn it on around the call.", site);
  }
  check_process_modes(site);
}

void CallerState::check_autograd_keys(const exec::CallSite& site) const {
  if (autograd_keys() == autograd_keys_) return;
  throw NotCapturable(
      "a guard of dispatch keys, such as at::AutoDispatchBelowADInplaceOrView, hides autograd from an "
      "operator inside of a captured function",
      "Use a NoGradGuard or detach(), or put the operator into rehearse::opaque().", site);
}

CallerState::ProcessModes CallerState::ProcessModes::current() {
  const at::Context& context = at::globalContext();
  return {c10::get_default_dtype_as_scalartype(),
          {context.deterministicAlgorithms(), context.deterministicAlgorithmsWarnOnly(), context.userEnabledFlashSDP(),
           context.userEnabledMemEfficientSDP(), context.userEnabledMathSDP(), context.userEnabledCuDNNSDP()}};
}

bool CallerState::has_process_modes() const { return ProcessModes::current() == process_modes_; }

void CallerState::check_process_modes(const exec::CallSite& site) const {
  const ProcessModes now = ProcessModes::current();
  if (now.default_dtype != process_modes_.default_dtype) {
    throw NotCapturable("the default dtype changes inside of a captured function",
                        "Set it outside, or give factories the dtype.", site);
  }
  if (now == process_modes_) return;
  throw NotCapturable("deterministic algorithms or attention's back ends are switched inside of a captured function",
                      "Switch them outside.", site);
}

}  // namespace rehearse::capture
