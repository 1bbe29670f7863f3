// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/fsdp/meta_parameters.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>
#include <torch/nn/module.h>

#include "checks/values/module_tensors.h"
#include "parallel/fsdp/freed_storage.h"
#include "parallel/fsdp/sharded_parameter.h"
#include "parallel/model/module_state.h"

namespace rehearse::parallel {
namespace {

void require_here(const checks::ModuleTensor& each, const char* what) {
  TORCH_CHECK_VALUE(
      !each.tensor.is_meta(), "FSDP: ", what, " \"", each.name,
      "\" is on the meta device, and every rank keeps the whole of it. from_meta makes sharded parameters "
      "alone: make it on the CPU or a GPU.");
}

at::Tensor filled(const NamedParameter& parameter, const FromMeta& from) {
  const at::Tensor whole = at::empty(parameter.tensor.sizes(), parameter.tensor.options().requires_grad(false));
  from.fill(parameter.names.front(), whole);
  TORCH_CHECK_VALUE(whole.sizes() == parameter.tensor.sizes(), "FSDP: from_meta.fill has given parameter \"",
                    parameter.names.front(), "\" sizes ", whole.sizes(), "; it has ", parameter.tensor.sizes(),
                    ". Fill it in place.");
  return whole;
}

void take_first_ranks(const at::Tensor& whole, const ShardGroup& group) {
  for (const auto& ranks : {group.replicas(), group.shards()}) {
    if (ranks && ranks->getSize() > 1) broadcast_state(ranks, {whole}, 0);
  }
}

}  // namespace

void require_makeable(const torch::nn::Module& module, const FullyShardedOptions& options) {
  TORCH_CHECK_VALUE(!options.from_meta || !options.from_meta->device.is_meta(),
                    "FSDP: from_meta.device is meta, where nothing has values. Give the CPU or a GPU.");
  for (const auto& each : checks::buffers_of(module)) require_here(each, "buffer");
  const auto& ignored = options.parameters_to_ignore;
  for (const auto& each : checks::parameters_of(module)) {
    if (std::ranges::find(ignored, each.name) != ignored.end()) require_here(each, "ignored parameter");
  }
}

void move_from_meta(std::vector<PlannedUnit>& plan, const FromMeta& from) {
  const at::NoGradGuard no_grad;
  for (auto& unit : plan) {
    for (auto& each : unit.parameters) {
      if (!each.tensor.is_meta()) continue;
      const at::Tensor here = at::empty({0}, each.tensor.options().device(from.device).requires_grad(false));
      here.unsafeGetTensorImpl()->set_sizes_contiguous(each.tensor.sizes());
      free_storage(here);
      // set_data() refuses another kind of device, and the tensor must stay the same object, because the module's
      // members refer to it.
      each.tensor.unsafeGetTensorImpl()->shallow_copy_from(here.getIntrusivePtr());
      each.is_made = true;
    }
  }
}

void make_rows(std::vector<PlannedUnit>& plan, const torch::nn::Module& module, const FromMeta& from,
               const ShardGroup& group, bool takes_first) {
  const at::NoGradGuard no_grad;
  std::unordered_map<const c10::TensorImpl*, NamedParameter*> made;
  for (auto& unit : plan) {
    for (auto& each : unit.parameters) {
      if (each.is_made) made.emplace(each.tensor.unsafeGetTensorImpl(), &each);
    }
  }
  for (const auto& tensor : module.parameters()) {  // the order in which a module fills its own parameters
    const auto found = made.find(tensor.unsafeGetTensorImpl());
    if (found == made.end()) continue;
    auto& parameter = *found->second;
    made.erase(found);
    const ShardLayout layout(tensor.sizes(), group.size());
    parameter.has_values = from.fill != nullptr;
    if (!parameter.has_values) {
      parameter.rows = at::empty(layout.shard_sizes(group.rank()), tensor.options().requires_grad(false));
      continue;
    }
    const at::Tensor whole = filled(parameter, from);
    if (takes_first) take_first_ranks(whole, group);
    parameter.rows = whole.narrow(0, layout.first_row(group.rank()), layout.rows_of(group.rank())).clone();
  }
}

}  // namespace rehearse::parallel
