// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/model/module_state.h"

#include <algorithm>
#include <set>
#include <sstream>
#include <unordered_map>
#include <utility>

#include <torch/csrc/distributed/c10d/comm.hpp>

#include "checks/values/module_tensors.h"

namespace rehearse::parallel {
namespace {

void check_parameters(const std::vector<at::Tensor>& parameters) {
  bool any_gradient = false;
  std::set<std::string> device_types;
  for (const auto& parameter : parameters) {
    any_gradient |= parameter.requires_grad();
    device_types.insert(c10::DeviceTypeName(parameter.device().type(), /*lower_case=*/true));
  }
  TORCH_CHECK(any_gradient,
              "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a "
              "gradient.");
  std::ostringstream list;
  for (const auto& type : device_types) list << (list.tellp() > 0 ? ", " : "") << "'" << type << "'";
  TORCH_CHECK_VALUE(device_types.size() == 1,
                    "DistributedDataParallel's input module must be on the same type of devices, but input module "
                    "parameters locate in {",
                    list.str(), "}.");
}

std::vector<at::Tensor> once(std::vector<checks::ModuleTensor> tensors, const IgnoredNames& ignored) {
  std::vector<at::Tensor> result;
  for (auto& each : checks::each_once(std::move(tensors), ignored)) result.push_back(std::move(each.tensor));
  return result;
}

bool has_name(const std::vector<checks::ModuleTensor>& tensors, const std::string& name) {
  return std::ranges::any_of(tensors, [&](const auto& each) { return each.name == name; });
}

}  // namespace

IgnoredNames ignored_names(const torch::nn::Module& module, const std::vector<std::string>& names) {
  if (names.empty()) return {};
  const auto parameters = checks::parameters_of(module);
  const auto buffers = checks::buffers_of(module);
  for (const auto& name : names) {
    TORCH_CHECK_VALUE(has_name(parameters, name) || has_name(buffers, name),
                      "DistributedDataParallel: parameters_to_ignore has \"", name,
                      "\", but the module has no parameter or buffer of that name. Names are as those of "
                      "named_parameters() and named_buffers(), \"encoder.0.weight\".");
  }
  return {names.begin(), names.end()};
}

ReducedParameters reduced_parameters(const torch::nn::Module& module, const IgnoredNames& ignored) {
  check_parameters(module_parameters(module, ignored));
  ReducedParameters result;
  std::unordered_map<const c10::TensorImpl*, std::size_t> index_of;
  for (auto& each : checks::parameters_of(module)) {
    if (!each.tensor.requires_grad() || ignored.contains(each.name)) continue;
    const auto [entry, is_new] = index_of.try_emplace(each.tensor.unsafeGetTensorImpl(), result.names.size());
    if (is_new) {
      result.tensors.push_back(std::move(each.tensor));
      result.names.push_back(std::move(each.name));
      result.expect_sparse.push_back(each.sparse_gradient);
    } else {
      result.names[entry->second] = std::move(each.name);
    }
  }
  return result;
}

std::vector<at::Tensor> module_parameters(const torch::nn::Module& module, const IgnoredNames& ignored) {
  return once(checks::parameters_of(module), ignored);
}

std::vector<at::Tensor> module_buffers(const torch::nn::Module& module, const IgnoredNames& ignored) {
  return once(checks::buffers_of(module), ignored);
}

void broadcast_state(const c10::intrusive_ptr<c10d::ProcessGroup>& group, std::vector<at::Tensor> tensors, int root) {
  if (tensors.empty()) return;
  constexpr std::size_t kCoalescedBytes = std::size_t{250} * 1024 * 1024;
  const at::NoGradGuard no_grad;
  for (auto& tensor : tensors) tensor = tensor.detach();
  c10d::broadcast_coalesced(group, tensors, kCoalescedBytes, root);
}

}  // namespace rehearse::parallel
