// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/checkpoint/run_state.h"

#include <algorithm>

#include <ATen/autocast_mode.h>

#include <rehearse_internal/operators/generator_state.h>

namespace rehearse::parallel {
namespace {

constexpr std::array kAutocastDevices = {at::kCPU, at::kCUDA};

}  // namespace

void RunState::take() {
  for (auto& [device, state] : generators_) state = operators::generator_state(device);
  for (std::size_t i = 0; i < kAutocastDevices.size(); ++i) {
    const auto device = kAutocastDevices[i];
    autocast_[i] = {at::autocast::is_autocast_enabled(device), at::autocast::get_autocast_dtype(device)};
  }
  autocast_cache_ = at::autocast::is_autocast_cache_enabled();
}

RunState RunState::current(const std::vector<at::Tensor>& inputs) {
  RunState state;
  std::vector<at::Device> devices = {at::kCPU};
  for (const at::Tensor& input : inputs) {
    if (!input.defined() || input.is_meta()) continue;  // Meta has no generator
    if (std::find(devices.begin(), devices.end(), input.device()) == devices.end()) devices.push_back(input.device());
  }
  for (const at::Device& device : devices) state.generators_.emplace_back(device, at::Tensor());
  state.take();
  return state;
}

RunState RunState::current_like_this() const {
  RunState state = *this;
  state.take();
  return state;
}

void RunState::restore() const {
  for (const auto& [device, state] : generators_) operators::set_generator_state(state, device);
  for (std::size_t i = 0; i < kAutocastDevices.size(); ++i) {
    at::autocast::set_autocast_enabled(kAutocastDevices[i], autocast_[i].enabled);
    at::autocast::set_autocast_dtype(kAutocastDevices[i], autocast_[i].dtype);
  }
  at::autocast::set_autocast_cache_enabled(autocast_cache_);
}

RunStateScope::RunStateScope(const RunState& state) : before_(state.current_like_this()) {
  state.restore();
  at::autocast::set_autocast_cache_enabled(false);
}

NoAutocastCache::NoAutocastCache() : before_(at::autocast::is_autocast_cache_enabled()) {
  at::autocast::set_autocast_cache_enabled(false);
}

NoAutocastCache::~NoAutocastCache() { at::autocast::set_autocast_cache_enabled(before_); }

}  // namespace rehearse::parallel
