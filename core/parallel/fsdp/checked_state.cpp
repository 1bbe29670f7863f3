// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/fsdp/checked_state.h"

#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

#include <c10/core/GradMode.h>

#include <rehearse_internal/operators/guarded_storages.h>

namespace rehearse::parallel {
namespace {

using checks::ModelState;
using checks::NamedTensor;

const at::Tensor& value_of(const std::vector<NamedTensor>& values, const std::string& name) {
  const auto found = std::find_if(values.begin(), values.end(), [&](const auto& each) { return each.name == name; });
  TORCH_CHECK(found != values.end(), "FSDP: the ranks have not shown parameter \"", name, "\" to the check");
  return found->tensor;
}

void fill_with(ShardedModel& model, const std::vector<NamedTensor>& values) {
  const operators::UnguardedStorages unguarded;
  const at::NoGradGuard no_grad;
  for (auto& unit : model.units()) {
    for (auto& each : unit.parameters()) {
      each.fill();
      each.whole().copy_(value_of(values, each.name()));
    }
  }
}

std::shared_ptr<const ModelState> lend(const std::shared_ptr<ShardedModel>& model,
                                       const std::vector<NamedTensor>& values) {
  model->require_idle("the function given to RankContext::check_gradients()");
  fill_with(*model, values);
  model->set_lent(true);
  auto state = std::make_unique<ModelState>(model->module());
  return {state.release(), [model](const ModelState* lent) {
            model->set_lent(false);
            for (auto& unit : model->units()) unit.abandon();
            delete lent;
          }};
}

}  // namespace

ModelState checked_state_of(const std::shared_ptr<ShardedModel>& model) {
  std::vector<NamedTensor> tensors;
  std::unordered_set<const c10::TensorImpl*> sharded;
  const int rank = model->group().rank();
  for (const auto& unit : model->units()) {
    for (const auto& each : unit.parameters()) {
      const auto& layout = each.layout();
      tensors.push_back(
          {each.name(), each.shard(), false, checks::RowsOfWhole{layout.sizes(), layout.first_row(rank)}});
      sharded.insert(each.tensor().unsafeGetTensorImpl());
    }
  }
  const ModelState own(model->module());
  for (const auto& each : own.tensors()) {
    if (!sharded.contains(each.tensor.unsafeGetTensorImpl())) tensors.push_back(each);
  }
  return {std::move(tensors), [model](const std::vector<NamedTensor>& values) { return lend(model, values); }};
}

}  // namespace rehearse::parallel
