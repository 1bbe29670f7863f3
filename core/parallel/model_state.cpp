// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/model_state.h"

#include <set>
#include <sstream>
#include <unordered_map>
#include <unordered_set>

#include <torch/nn/module.h>
#include <torch/nn/modules/embedding.h>

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

void check_parameters(const torch::nn::Module& module) {
  bool any_gradient = false;
  std::set<std::string> device_types;
  for (const auto& parameter : module.parameters()) {
    any_gradient |= parameter.requires_grad();
    device_types.insert(c10::DeviceTypeName(parameter.device().type(), /*lower_case=*/true));
  }
  TORCH_CHECK(
      any_gradient,
      "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a "
      "gradient.");
  std::ostringstream list;
  for (const auto& type : device_types) list << (list.tellp() > 0 ? ", " : "") << "'" << type << "'";
  TORCH_CHECK_VALUE(
      device_types.size() == 1,
      "DistributedDataParallel's input module must be on the same type of devices, but input module "
      "parameters locate in {",
      list.str(), "}.");
}

std::vector<at::Tensor> unique(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> result;
  std::unordered_set<const c10::TensorImpl*> seen;
  for (const auto& tensor : tensors) {
    if (tensor.defined() && seen.insert(tensor.unsafeGetTensorImpl()).second) result.push_back(tensor);
  }
  return result;
}

}  // namespace

ReducedParameters reduced_parameters(const torch::nn::Module& module) {
  check_parameters(module);
  ReducedParameters result;
  std::unordered_map<const c10::TensorImpl*, std::size_t> index_of;
  for_each_module(module, [&](const std::string& prefix, const torch::nn::Module& owner) {
    const bool sparse = makes_sparse_gradients(owner);
    for (const auto& item : owner.named_parameters(/*recurse=*/false)) {
      if (!item.value().requires_grad()) continue;
      const auto [place, is_new] =
          index_of.try_emplace(item.value().unsafeGetTensorImpl(), result.names.size());
      if (is_new) {
        result.tensors.push_back(item.value());
        result.names.push_back(prefix + item.key());
        result.expect_sparse.push_back(sparse);
      } else {
        result.names[place->second] = prefix + item.key();
      }
    }
  });
  return result;
}

std::vector<at::Tensor> module_parameters(const torch::nn::Module& module) {
  return unique(module.parameters());
}

std::vector<at::Tensor> module_buffers(const torch::nn::Module& module) {
  return unique(module.buffers());
}

}  // namespace rehearse::parallel
