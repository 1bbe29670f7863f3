// SPDX-License-Identifier: BSD-3-Clause
#include "checks/values/module_tensors.h"

#include <utility>

#include <torch/nn/module.h>
#include <torch/nn/modules/embedding.h>

namespace rehearse::checks {
namespace {

bool makes_sparse_gradients(const torch::nn::Module& module) {
  if (const auto* embedding = module.as<torch::nn::EmbeddingImpl>()) return embedding->options.sparse();
  if (const auto* bag = module.as<torch::nn::EmbeddingBagImpl>()) return bag->options.sparse();
  return false;
}

// Calls `visit` with each module and the prefix of its tensors' names.
template <class Visit>
void for_each_module(const torch::nn::Module& root, Visit&& visit) {
  root.apply(
      [&](const std::string& path, const torch::nn::Module& each) { visit(path.empty() ? path : path + ".", each); });
}

}  // namespace

std::vector<ModuleTensor> parameters_of(const torch::nn::Module& module) {
  std::vector<ModuleTensor> tensors;
  for_each_module(module, [&](const std::string& prefix, const torch::nn::Module& owner) {
    const bool sparse = makes_sparse_gradients(owner);
    for (const auto& item : owner.named_parameters(/*recurse=*/false)) {
      if (item.value().defined()) tensors.push_back({prefix + item.key(), item.value(), false, sparse});
    }
  });
  return tensors;
}

std::vector<ModuleTensor> buffers_of(const torch::nn::Module& module) {
  std::vector<ModuleTensor> tensors;
  for_each_module(module, [&](const std::string& prefix, const torch::nn::Module& owner) {
    for (const auto& item : owner.named_buffers(/*recurse=*/false)) {
      if (item.value().defined()) tensors.push_back({prefix + item.key(), item.value(), true});
    }
  });
  return tensors;
}

std::vector<ModuleTensor> each_once(std::vector<ModuleTensor> tensors,
                                    const std::unordered_set<std::string>& left_out) {
  std::unordered_set<const c10::TensorImpl*> seen;  // looked up; never iterated
  std::erase_if(tensors, [&](const ModuleTensor& each) {
    return left_out.contains(each.name) || !seen.insert(each.tensor.unsafeGetTensorImpl()).second;
  });
  return tensors;
}

const std::string& name_of(const torch::nn::Module& module) { return module.name(); }

}  // namespace rehearse::checks
