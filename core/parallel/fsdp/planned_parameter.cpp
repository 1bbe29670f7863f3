// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/fsdp/planned_parameter.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include <c10/core/TensorImpl.h>

namespace rehearse::parallel {
namespace {

using Tensors = std::vector<checks::ModuleTensor>;

void require_ignored_names(const Tensors& parameters, const std::vector<std::string>& ignored) {
  for (const auto& name : ignored) {
    TORCH_CHECK_VALUE(std::ranges::any_of(parameters, [&](const auto& each) { return each.name == name; }),
                      "FSDP: parameters_to_ignore has \"", name,
                      "\", but the module has no parameter of that name. Names are as those of named_parameters(), "
                      "\"encoder.0.weight\".");
  }
}

// A parameter's memory will be freed, so no other tensor may share it.
void require_own_memory(const checks::ModuleTensor& each) {
  const at::Tensor& tensor = each.tensor;
  const auto bytes = static_cast<std::size_t>(tensor.numel()) * tensor.element_size();
  TORCH_CHECK_VALUE(bytes == 0 || tensor.storage().nbytes() > 0, "FSDP: parameter \"", each.name,
                    "\" has no memory: another FullyShardedDataParallel has sharded it already. Make a module anew.");
  TORCH_CHECK_VALUE(tensor.is_contiguous(), "FSDP: parameter \"", each.name, "\" of sizes ", tensor.sizes(),
                    " and strides ", tensor.strides(), " is not contiguous. Make a contiguous one in its place.");
  TORCH_CHECK_VALUE(tensor.storage_offset() == 0 && tensor.storage().nbytes() == bytes, "FSDP: parameter \"", each.name,
                    "\" is a part of other memory: it takes ", bytes, " bytes from byte ",
                    tensor.storage_offset() * static_cast<std::int64_t>(tensor.element_size()), " on of ",
                    tensor.storage().nbytes(), ". Make it of a clone().");
}

void require_shardable(const checks::ModuleTensor& each, bool takes_meta) {
  const at::Tensor& tensor = each.tensor;
  TORCH_CHECK_VALUE(!each.sparse_gradient && tensor.layout() == at::kStrided, "FSDP: parameter \"", each.name,
                    "\" is sparse, or belongs to an embedding with sparse gradients, which nobody can shard. Make ",
                    "the embedding without .sparse(true), or list it in parameters_to_ignore.");
  TORCH_CHECK_VALUE(takes_meta || !tensor.is_meta(), "FSDP: parameter \"", each.name,
                    "\" is on the meta device and has no values to shard. Say in from_meta where it is to be and what "
                    "fills it, or make the module on the CPU or a GPU.");
  TORCH_CHECK_VALUE(tensor.dim() > 0, "FSDP: parameter \"", each.name,
                    "\" is a scalar and has no rows to shard. Make it a tensor of sizes [1].");
  TORCH_CHECK_VALUE(tensor.is_leaf(), "FSDP: parameter \"", each.name,
                    "\" is computed from other tensors. Register what it is computed from.");
  require_own_memory(each);
}

void require_apart(const Tensors& parameters) {
  std::unordered_map<const c10::StorageImpl*, const checks::ModuleTensor*> owners;
  for (const auto& each : parameters) {
    const auto [found, is_new] = owners.try_emplace(each.tensor.storage().unsafeGetStorageImpl(), &each);
    TORCH_CHECK_VALUE(is_new || found->second->tensor.is_same(each.tensor), "FSDP: parameters \"", found->second->name,
                      "\" and \"", each.name,
                      "\" are two tensors in the same memory. Register one tensor under both names.");
  }
}

}  // namespace

Tensors shardable_parameters(const torch::nn::Module& module, const std::vector<std::string>& ignored,
                             bool takes_meta) {
  auto parameters = checks::parameters_of(module);
  require_ignored_names(parameters, ignored);
  const std::unordered_set<std::string> names(ignored.begin(), ignored.end());
  std::unordered_set<const c10::TensorImpl*> left_out;  // ignored under any of their names
  for (const auto& each : parameters) {
    if (names.contains(each.name)) left_out.insert(each.tensor.unsafeGetTensorImpl());
  }
  std::erase_if(parameters, [&](const auto& each) { return left_out.contains(each.tensor.unsafeGetTensorImpl()); });
  for (const auto& each : parameters) require_shardable(each, takes_meta);
  require_apart(parameters);
  return parameters;
}

}  // namespace rehearse::parallel
