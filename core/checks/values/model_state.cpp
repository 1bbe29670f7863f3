// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/checks/model_state.h>

#include <iterator>
#include <sstream>
#include <utility>

#include <ATen/ops/scalar_tensor.h>
#include <fmt/format.h>
#include <torch/optim/optimizer.h>
#include <torch/serialize/archive.h>

#include <rehearse_internal/checks/unwatched.h>

#include "checks/values/module_tensors.h"

namespace rehearse::checks {
namespace {

// `part`: the options of a group, or the state of a parameter. Only its archive shows what it consists of.
template <class Part>
void add_part(std::vector<NamedTensor>& tensors, const std::string& name, const Part& part) {
  torch::serialize::OutputArchive written;
  part.serialize(written);
  std::stringstream bytes;
  written.save_to(bytes);
  torch::serialize::InputArchive archive;
  archive.load_from(bytes);
  for (const auto& key : archive.keys()) {
    c10::IValue value;
    archive.read(key, value);
    for (const auto& each : value.isTuple() ? value.toTupleRef().elements().vec() : std::vector{value}) {
      if (each.isTensor()) tensors.push_back({name + "." + key, each.toTensor()});
      if (each.isScalar()) tensors.push_back({name + "." + key, at::scalar_tensor(each.toScalar(), at::kDouble)});
    }
  }
}

}  // namespace

ModelState::ModelState(const torch::nn::Module& module) : ModelState(module, {}) {}

ModelState::ModelState(const torch::nn::Module& module, const std::vector<std::string>& left_out) {
  auto all = parameters_of(module);
  auto buffers = buffers_of(module);
  std::move(buffers.begin(), buffers.end(), std::back_inserter(all));
  for (auto& each : each_once(std::move(all), {left_out.begin(), left_out.end()})) {
    tensors_.push_back({std::move(each.name), std::move(each.tensor), each.is_buffer});
  }
}

ModelState::ModelState(const torch::optim::Optimizer& optimizer) {
  const Unwatched own;
  std::size_t groups = 0, parameters = 0;
  for (const auto& group : optimizer.param_groups()) {
    if (group.has_options()) add_part(tensors_, fmt::format("options of group {}", groups++), group.options());
    for (const auto& parameter : group.params()) {
      const auto name = fmt::format("state of parameter {}", parameters++);
      const auto found = optimizer.state().find(parameter.unsafeGetTensorImpl());
      if (found != optimizer.state().end()) add_part(tensors_, name, *found->second);
    }
  }
}

ModelState ModelState::with_buffers(std::optional<bool> wanted) const {
  if (wanted.value_or(!rebroadcast_)) return *this;
  ModelState state = *this;
  std::erase_if(state.tensors_, [](const NamedTensor& each) { return each.is_buffer; });
  return state;
}

}  // namespace rehearse::checks
