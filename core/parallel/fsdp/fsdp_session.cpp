// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/parallel/fsdp_session.h>

#include <unordered_map>
#include <utility>

#include "checks/values/module_tensors.h"
#include "parallel/fsdp/checked_state.h"
#include "parallel/fsdp/gradient_norm.h"
#include "parallel/fsdp/model_state_dict.h"
#include "parallel/fsdp/sharded_model.h"
#include "parallel/number_exchange.h"

namespace rehearse::parallel {
namespace {

std::unordered_map<const c10::TensorImpl*, const ShardedParameter*> sharded_parameters(const ShardedModel& model) {
  std::unordered_map<const c10::TensorImpl*, const ShardedParameter*> found;
  for (const auto& unit : model.units()) {
    for (const auto& each : unit.parameters()) found.emplace(each.tensor().unsafeGetTensorImpl(), &each);
  }
  return found;
}

std::vector<at::Tensor> gradients_of_ignored(const ShardedModel& model) {
  const auto sharded = sharded_parameters(model);
  std::vector<at::Tensor> gradients;
  for (const auto& each : checks::each_once(checks::parameters_of(model.module()), {})) {
    if (!sharded.contains(each.tensor.unsafeGetTensorImpl()) && each.tensor.grad().defined())
      gradients.push_back(each.tensor.grad());
  }
  return gradients;
}

}  // namespace

FsdpSession::FsdpSession(std::shared_ptr<torch::nn::Module> module, GroupPtr group, GroupPtr replicas,
                         FullyShardedOptions options)
    : model_(ShardedModel::make(std::move(module), std::move(group), std::move(replicas), std::move(options))) {}

FsdpSession::~FsdpSession() = default;

FsdpSession::Forward::Forward(FsdpSession& session) : model_(session.model_.get()) { model_->begin_forward(); }

FsdpSession::Forward::~Forward() {
  if (model_ != nullptr) model_->fail_forward();
}

void FsdpSession::Forward::finish(std::vector<at::Tensor>& outputs) {
  model_->end_forward(outputs);
  model_ = nullptr;
}

std::optional<at::ScalarType> FsdpSession::input_dtype() const noexcept {
  const auto& dtypes = model_->options().mixed_precision;
  return dtypes && dtypes->cast_forward_inputs ? dtypes->param_dtype : std::nullopt;
}

bool FsdpSession::set_gradient_sync(bool on) noexcept { return model_->set_gradient_sync(on); }

void FsdpSession::zero_grad() { model_->zero_grad(); }

at::Tensor FsdpSession::clip_grad_norm(double max_norm, double norm_type) {
  model_->require_idle("clip_grad_norm_()");
  std::vector<at::Tensor> sharded;
  for (const auto& unit : model_->units()) {
    for (const auto& each : unit.parameters()) {
      if (each.shard().grad().defined()) sharded.push_back(each.shard().grad());
    }
  }
  auto all = gradients_of_ignored(*model_);
  const auto& units = model_->units();
  const at::Device device =
      units.empty() ? device_of(*model_->group().shards()) : units.front().parameters().front().shard().device();
  const at::Tensor norm = norm_of_whole(model_->group(), sharded, all, norm_type, max_norm, device);
  all.insert(all.end(), sharded.begin(), sharded.end());
  scale_to_norm(all, norm, max_norm);
  return norm;
}

NamedTensors FsdpSession::named_parameters() const {
  const auto sharded = sharded_parameters(*model_);
  NamedTensors result;
  for (auto& each : checks::each_once(checks::parameters_of(model_->module()), {})) {
    const auto found = sharded.find(each.tensor.unsafeGetTensorImpl());
    result.emplace_back(each.name, found != sharded.end() ? found->second->shard() : each.tensor);
  }
  return result;
}

std::vector<ShardUnitInfo> FsdpSession::units() const {
  std::vector<ShardUnitInfo> result;
  for (const auto& unit : model_->units()) {
    auto& info = result.emplace_back(ShardUnitInfo{unit.path(), {}, unit.is_whole()});
    for (const auto& each : unit.parameters()) info.parameters.push_back(each.name());
  }
  return result;
}

checks::ModelState FsdpSession::checked_state() const { return checked_state_of(model_); }

NamedTensors FsdpSession::full_state_dict() const { return gather_state(*model_); }
void FsdpSession::load_full_state_dict(const NamedTensors& state) { load_whole_state(*model_, state); }
std::vector<SavedRows> FsdpSession::sharded_state_dict() const { return own_rows_of_state(*model_); }
void FsdpSession::load_sharded_state_dict(const std::vector<SavedRows>& state) { load_rows_of_state(*model_, state); }
at::Tensor FsdpSession::gather_like(const std::string& parameter, const at::Tensor& rows) const {
  return parallel::gather_like(*model_, parameter, rows);
}
at::Tensor FsdpSession::rows_like(const std::string& parameter, const at::Tensor& whole) const {
  return parallel::rows_like(*model_, parameter, whole);
}

}  // namespace rehearse::parallel
