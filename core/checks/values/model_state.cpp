// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/checks/model_state.h>

#include <iterator>
#include <utility>

#include "checks/values/module_tensors.h"

namespace rehearse::checks {

ModelState::ModelState(const torch::nn::Module& module) : ModelState(module, {}) {}

ModelState::ModelState(const torch::nn::Module& module, const std::vector<std::string>& left_out) {
  auto all = parameters_of(module);
  auto buffers = buffers_of(module);
  std::move(buffers.begin(), buffers.end(), std::back_inserter(all));
  for (auto& each : each_once(std::move(all), {left_out.begin(), left_out.end()})) {
    tensors_.push_back({std::move(each.name), std::move(each.tensor), each.is_buffer});
  }
}

ModelState ModelState::with_buffers(std::optional<bool> wanted) const {
  if (wanted.value_or(!rebroadcast_)) return *this;
  ModelState state = *this;
  std::erase_if(state.tensors_, [](const NamedTensor& each) { return each.is_buffer; });
  return state;
}

}  // namespace rehearse::checks
