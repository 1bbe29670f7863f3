// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/model/model_state.h"

#include <set>
#include <sstream>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <torch/nn/module.h>
#include <torch/nn/modules/embedding.h>
#include <torch/csrc/distributed/c10d/comm.hpp>

namespace rehearse::parallel {
namespace {

bool makes_sparse_gradients(const torch::nn::Module& module) {
  if (const auto* embedding = module.as<torch::nn::EmbeddingImpl>()) return embedding->options.sparse();
  if (const auto* bag = module.as<torch::nn::EmbeddingBagImpl>()) return bag->options.sparse();
  return false;
}

// The module itself may not be held by a shared_ptr, which named_modules() would need to include it.
template <class Visit>
void for_each_module(const torch::nn::Module& root, Visit&& visit) {
  visit(std::string(), root);
  for (const auto& item : root.named_modules(/*name_prefix=*/"", /*include_self=*/false)) {
    visit(item.key() + ".", *item.value());
  }
}

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

// Each tensor once that has a name which is not ignored. `items`: an OrderedDict of names and tensors.
template <class Items>
std::vector<at::Tensor> unique(const Items& items, const IgnoredNames& ignored) {
  std::vector<at::Tensor> result;
  std::unordered_set<const c10::TensorImpl*> seen;
  for (const auto& item : items) {
    if (!item.value().defined() || ignored.contains(item.key())) continue;
    if (seen.insert(item.value().unsafeGetTensorImpl()).second) result.push_back(item.value());
  }
  return result;
}

}  // namespace

IgnoredNames ignored_names(const torch::nn::Module& module, const std::vector<std::string>& names) {
  if (names.empty()) return {};
  const auto parameters = module.named_parameters();
  const auto buffers = module.named_buffers();
  for (const auto& name : names) {
    TORCH_CHECK_VALUE(parameters.contains(name) || buffers.contains(name),
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
  for_each_module(module, [&](const std::string& prefix, const torch::nn::Module& owner) {
    const bool sparse = makes_sparse_gradients(owner);
    for (const auto& item : owner.named_parameters(/*recurse=*/false)) {
      auto name = prefix + item.key();
      if (!item.value().requires_grad() || ignored.contains(name)) continue;
      const auto [place, is_new] = index_of.try_emplace(item.value().unsafeGetTensorImpl(), result.names.size());
      if (is_new) {
        result.tensors.push_back(item.value());
        result.names.push_back(std::move(name));
        result.expect_sparse.push_back(sparse);
      } else {
        result.names[place->second] = std::move(name);
      }
    }
  });
  return result;
}

std::vector<at::Tensor> module_parameters(const torch::nn::Module& module, const IgnoredNames& ignored) {
  return unique(module.named_parameters(), ignored);
}

std::vector<at::Tensor> module_buffers(const torch::nn::Module& module, const IgnoredNames& ignored) {
  return unique(module.named_buffers(), ignored);
}

void broadcast_state(const c10::intrusive_ptr<c10d::ProcessGroup>& group, std::vector<at::Tensor> tensors, int root) {
  if (tensors.empty()) return;
  constexpr std::size_t kCoalescedBytes = std::size_t{250} * 1024 * 1024;
  const at::NoGradGuard no_grad;
  for (auto& tensor : tensors) tensor = tensor.detach();
  c10d::broadcast_coalesced(group, tensors, kCoalescedBytes, root);
}

}  // namespace rehearse::parallel
