// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/parallel/fsdp_session.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <rehearse/checks/model_state.h>
#include <rehearse/parallel/device_mesh.h>
#include <rehearse_internal/operators/guarded_storages.h>

#include "checks/values/module_tensors.h"
#include "parallel/fsdp/model_state_dict.h"
#include "parallel/fsdp/shard_group.h"
#include "parallel/fsdp/sharded_model.h"
#include "parallel/number_exchange.h"

namespace rehearse::parallel {
namespace {

constexpr double kStability = 1e-6;  // as in PyTorch's clip_grad_norm_()

// The norm of a rank's own tensors; 0 if it has none. Always in double precision, because an all-reduce adds up the
// norms, and a rank without tensors does not know their dtype.
at::Tensor local_norm(const std::vector<at::Tensor>& tensors, double norm_type, at::Device device) {
  std::vector<at::Tensor> norms;
  for (const auto& each : tensors) {
    if (each.numel() > 0) norms.push_back(at::linalg_vector_norm(each, norm_type).to(at::kDouble));
  }
  if (norms.empty()) return at::zeros({}, at::TensorOptions(at::kDouble).device(device));
  return at::linalg_vector_norm(at::stack(norms), norm_type);
}

// The norm of all ranks' `sharded` tensors and of the `common` tensors, which every rank has as a whole. Returns a
// double on `device`, the same on every rank; 0 if no rank has a tensor. Blocks. All ranks must pass the same
// `norm_type` and `max_norm`: the name of the call contains both, and calls with different names are a mismatch.
// `max_norm` has no other use here.
at::Tensor norm_of_whole(const ShardGroup& group, const std::vector<at::Tensor>& sharded,
                         const std::vector<at::Tensor>& common, double norm_type, double max_norm, at::Device device) {
  const at::NoGradGuard no_grad;
  TORCH_CHECK_VALUE(norm_type > 0, "FSDP: clip_grad_norm_() was given norm_type ", norm_type,
                    "; it is a number above 0, or infinity");
  const bool takes_largest = std::isinf(norm_type);
  at::Tensor own = local_norm(sharded, norm_type, device);
  if (!takes_largest) own = own.pow(norm_type);
  if (group.size() > 1) {
    const auto what = fmt::format("gradient norm of type {}, at most {}", norm_type, max_norm);
    group.all_reduce_norm(own, takes_largest, what)->wait();
  }
  if (!takes_largest) own = own.pow(1 / norm_type);
  return at::linalg_vector_norm(at::stack({own, local_norm(common, norm_type, device)}), norm_type);
}

// Multiplies the tensors by max_norm / norm if that is less than 1, as torch::nn::utils::clip_grad_norm_() does.
void scale_to_norm(const std::vector<at::Tensor>& tensors, const at::Tensor& norm, double max_norm) {
  if (tensors.empty()) return;
  const at::NoGradGuard no_grad;
  const at::Tensor factor = (max_norm / (norm + kStability)).clamp_max(1.0);
  for (const auto& each : tensors) each.mul_(factor.to(each.scalar_type()));
}

using checks::ModelState;
using checks::NamedTensor;

const at::Tensor& value_of(const std::vector<NamedTensor>& values, const std::string& name) {
  const auto found = std::ranges::find_if(values, [&](const auto& each) { return each.name == name; });
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

// The state for state checkers: this rank's shards with their positions in the whole, ignored parameters, and buffers.
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

namespace {

void require_usable_mesh(const DeviceMesh& mesh) {
  TORCH_CHECK_VALUE(mesh.ndim() == 1 || mesh.ndim() == 2, "FullyShardedDataParallel was given a mesh of ", mesh.ndim(),
                    " dimensions; it takes one, for shards, or two, for replicas and shards. Slice it by names");
  TORCH_CHECK_VALUE(mesh.has_this_rank(), "FullyShardedDataParallel was given a mesh in which rank ", mesh.rank(),
                    " of the world is not. Make it on the mesh's ranks alone");
}

}  // namespace

c10::intrusive_ptr<c10d::ProcessGroup> shards_of(const DeviceMesh& mesh) {
  require_usable_mesh(mesh);
  return mesh.group(static_cast<int>(mesh.ndim()) - 1).get();
}

c10::intrusive_ptr<c10d::ProcessGroup> replicas_of(const DeviceMesh& mesh) {
  require_usable_mesh(mesh);
  return mesh.ndim() == 2 ? mesh.group(0).get() : nullptr;
}

}  // namespace rehearse::parallel
