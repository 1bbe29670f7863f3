// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/fsdp/unit_plan.h"

#include <algorithm>
#include <map>
#include <ranges>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <c10/core/TensorImpl.h>
#include <fmt/format.h>
#include <torch/nn/module.h>

#include "checks/values/module_tensors.h"

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

// The module's parameters, under all of their registered names, except those to be ignored. Throws c10::ValueError for
// unknown names, for parameters that cannot be sharded, and, unless `takes_meta`, for parameters on the meta device.
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

using Paths = std::set<std::string>;

struct Submodule {
  std::string path;
  const torch::nn::Module* module;
};

std::vector<Submodule> submodules_of(const torch::nn::Module& root) {
  std::vector<Submodule> found;
  root.apply([&](const std::string& path, const torch::nn::Module& each) { found.push_back({path, &each}); });
  return found;
}

void require_names(const std::vector<Submodule>& modules, const std::vector<std::string>& names) {
  for (const auto& name : names) {
    TORCH_CHECK_VALUE(std::ranges::any_of(modules, [&](const auto& each) { return each.path == name; }),
                      "FSDP: units has \"", name, "\", but no module has that name. Names are as those of ",
                      "named_modules(), \"encoder.0\".");
  }
}

// The path of the innermost unit that contains the name.
std::string unit_of(std::string name, const Paths& units) {
  for (auto dot = name.rfind('.'); dot != std::string::npos; dot = name.rfind('.')) {
    name.resize(dot);
    if (units.contains(name)) return name;
  }
  return "";
}

// Visits inner modules first, so that outer ones count only the remaining parameters.
Paths units_by_size(const std::vector<Submodule>& modules, const std::vector<checks::ModuleTensor>& parameters,
                    std::int64_t least) {
  Paths units;
  for (const auto& [path, module] : std::views::reverse(modules)) {
    if (path.empty()) continue;
    std::int64_t elements = 0;
    for (const auto& each : parameters) {
      if (is_inside(each.name, path) && !is_inside(unit_of(each.name, units), path)) elements += each.tensor.numel();
    }
    if (elements >= least) units.insert(path);
  }
  return units;
}

Paths unit_paths(const torch::nn::Module& root, const UnitPolicy& policy,
                 const std::vector<checks::ModuleTensor>& parameters) {
  const auto modules = submodules_of(root);
  require_names(modules, policy.names());
  if (policy.least_elements()) return units_by_size(modules, parameters, *policy.least_elements());
  Paths units(policy.names().begin(), policy.names().end());
  for (const auto& [path, module] : modules) {
    if (policy.predicate() && policy.predicate()(path, *module)) units.insert(path);
  }
  units.erase("");
  return units;
}

std::string text_of_unit(const std::string& path) {
  return path.empty() ? "the root unit" : fmt::format("unit \"{}\"", path);
}

void require_alike(const PlannedUnit& unit, const std::optional<FromMeta>& from) {
  const auto device_of = [&](const at::Tensor& tensor) {
    return tensor.is_meta() && from ? from->device : tensor.device();
  };
  const auto& first = unit.parameters.front();
  for (const auto& each : unit.parameters) {
    const auto differs = [&](const auto& what, const auto& of_first, const auto& own) {
      TORCH_CHECK_VALUE(of_first == own, "FSDP: ", text_of_unit(unit.path), " has parameter \"", first.names[0],
                        "\" of ", what, " ", of_first, " and \"", each.names[0], "\" of ", what, " ", own,
                        ". One call gathers both, so make them alike, or put them into units of their own.");
    };
    differs("dtype", first.tensor.scalar_type(), each.tensor.scalar_type());
    differs("device", device_of(first.tensor), device_of(each.tensor));
  }
}

}  // namespace

bool is_inside(const std::string& path, const std::string& outer) {
  if (outer.empty()) return !path.empty();
  return path.size() > outer.size() && path.starts_with(outer) && path[outer.size()] == '.';
}

std::vector<PlannedUnit> plan_units(torch::nn::Module& module, const FullyShardedOptions& options) {
  const auto parameters = shardable_parameters(module, options.parameters_to_ignore, options.from_meta.has_value());
  const auto units = unit_paths(module, options.units, parameters);
  std::vector<PlannedUnit> plan;
  std::map<std::string, std::size_t> index_of;  // index in the plan, by path
  std::unordered_map<const c10::TensorImpl*, std::pair<std::size_t, std::size_t>> seen;
  for (const auto& each : parameters) {
    const auto path = unit_of(each.name, units);
    const auto [entry, is_new_unit] = index_of.try_emplace(path, plan.size());
    if (is_new_unit) plan.push_back({path, {}});
    auto& unit = plan[entry->second];
    const auto [found, is_new] =
        seen.try_emplace(each.tensor.unsafeGetTensorImpl(), entry->second, unit.parameters.size());
    if (is_new) {
      unit.parameters.push_back({.names = {each.name}, .tensor = each.tensor});
      continue;
    }
    auto& same = plan[found->second.first].parameters[found->second.second];
    TORCH_CHECK_VALUE(found->second.first == entry->second, "FSDP: parameter \"", same.names[0], "\" of ",
                      text_of_unit(plan[found->second.first].path), " is also \"", each.name, "\" of ",
                      text_of_unit(path), ". Choose units so that one of them has both.");
    same.names.push_back(each.name);
  }
  for (const auto& unit : plan) require_alike(unit, options.from_meta);
  return plan;
}

}  // namespace rehearse::parallel
