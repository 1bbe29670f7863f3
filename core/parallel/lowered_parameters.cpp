// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/lowered_parameters.h"

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/variable.h>

#include <rehearse_internal/libtorch/nodes.h>

#include "parallel/hooks/completed_future.h"

namespace rehearse::parallel {
namespace {

// Does what the reducer's own hooks do. While parameters are lowered, the reducer's hooks do not run, because they are
// on the accumulators of the full-precision parameters.
class GradientReady : public torch::autograd::FunctionPostHook {
 public:
  GradientReady(std::weak_ptr<c10d::Reducer> reducer, std::size_t index)
      : reducer_(std::move(reducer)), index_(index) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list&) override {
    if (const auto reducer = reducer_.lock()) reducer->autograd_hook(index_);
    return outputs;
  }

 private:
  std::weak_ptr<c10d::Reducer> reducer_;
  std::size_t index_;
};

void cast_gradient(const at::Tensor& parameter, at::ScalarType dtype) {
  const at::Tensor& gradient = parameter.grad();
  if (gradient.defined() && gradient.scalar_type() != dtype) gradient.set_data(gradient.to(dtype));
}

}  // namespace

class LoweredParameters::State : public std::enable_shared_from_this<State> {
 public:
  State(const MixedPrecision& given, std::weak_ptr<c10d::Reducer> of) : dtypes(given), reducer_(std::move(of)) {}

  void add(const at::Tensor& parameter, std::optional<std::size_t> index) {
    index_of_.emplace(parameter.unsafeGetTensorImpl(), parameters_.size());
    parameters_.push_back({parameter, index});
  }

  bool lower() {
    if (lowered_ || !dtypes.param_dtype) return false;
    lowered_ = true;
    const at::NoGradGuard no_grad;
    for (auto& each : parameters_) lower(each);
    return true;
  }

  void restore() {
    for (auto& each : parameters_) restore(each);
    lowered_ = false;
  }

  void restore(const std::vector<at::Tensor>& parameters) {
    for (const auto& parameter : parameters) restore(parameters_[index_of_.at(parameter.unsafeGetTensorImpl())]);
    if (!lowered_ || ends_ || torch::autograd::get_current_graph_task_id() < 0) return;
    // Parameters that take no gradient are in no bucket, so restore them at the end of this backward.
    ends_ = true;
    torch::autograd::Engine::get_default_engine().queue_callback([self = shared_from_this()] {
      self->ends_ = false;
      self->restore();
    });
  }

  const MixedPrecision dtypes;

 private:
  struct Lowered {
    at::Tensor parameter;
    std::optional<std::size_t> index = {};  // in the reducer; nullopt: takes no gradient
    at::Tensor full = {};                   // the full-precision values, while lowered
    libtorch::NodePtr accumulator = {};
    std::uintptr_t hook = 0;
  };

  void lower(Lowered& each) {
    const auto dtype = *dtypes.param_dtype;
    each.full = each.parameter.variable_data();
    cast_gradient(each.parameter, dtype);
    each.parameter.set_data(each.full.to(dtype, /*non_blocking=*/false, /*copy=*/true));
    if (!each.index || each.full.scalar_type() == dtype) return;  // with the same dtype, the accumulator stays the same
    each.accumulator = torch::autograd::impl::grad_accumulator(each.parameter);
    each.hook = each.accumulator->add_post_hook(std::make_unique<GradientReady>(reducer_, *each.index));
  }

  void restore(Lowered& each) {
    if (!each.full.defined()) return;
    if (each.accumulator) each.accumulator->del_post_hook(each.hook);
    each.accumulator.reset();
    each.parameter.set_data(each.full);
    each.full.reset();
    cast_gradient(each.parameter, each.parameter.scalar_type());
  }

  std::weak_ptr<c10d::Reducer> reducer_;
  std::vector<Lowered> parameters_;
  std::unordered_map<const c10::TensorImpl*, std::size_t> index_of_;
  bool lowered_ = false;
  bool ends_ = false;
};

class LoweredParameters::Hook : public c10d::CppCommHookInterface<std::shared_ptr<State>> {
 public:
  Hook(std::shared_ptr<State> state, c10::intrusive_ptr<c10d::ProcessGroup> group)
      : CppCommHookInterface(std::move(state)), group_(std::move(group)) {}

  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override {
    const at::NoGradGuard no_grad;
    at::Tensor buffer = bucket.getBuffer();
    const auto& dtypes = state_->dtypes;
    if (dtypes.reduce_dtype && dtypes.reduce_dtype != dtypes.param_dtype) buffer = buffer.to(*dtypes.reduce_dtype);
    std::vector<at::Tensor> sum = {buffer};
    group_->allreduce(sum)->wait();
    sum[0].div_(group_->getSize());
    state_->restore(bucket.getParameters());
    return completed_future(std::move(sum[0]));
  }

 private:
  c10::intrusive_ptr<c10d::ProcessGroup> group_;
};

LoweredParameters::LoweredParameters(const MixedPrecision& dtypes, const torch::nn::Module& module,
                                     const IgnoredNames& ignored, const ReducedParameters& reduced,
                                     const c10::intrusive_ptr<c10d::ProcessGroup>& group,
                                     const std::shared_ptr<c10d::Reducer>& reducer)
    : state_(std::make_shared<State>(dtypes, reducer)) {
  std::unordered_map<const c10::TensorImpl*, std::size_t> index_of;
  for (std::size_t i = 0; i < reduced.tensors.size(); ++i) {
    index_of.emplace(reduced.tensors[i].unsafeGetTensorImpl(), i);
  }
  for (const auto& parameter : module_parameters(module, ignored)) {
    const auto found = index_of.find(parameter.unsafeGetTensorImpl());
    state_->add(parameter, found != index_of.end() ? std::optional(found->second) : std::nullopt);
  }
  if (dtypes.buffer_dtype) {
    for (const auto& buffer : module_buffers(module, ignored)) buffer.set_data(buffer.to(*dtypes.buffer_dtype));
  }
  reducer->register_comm_hook(std::make_unique<Hook>(state_, group));
}

LoweredParameters::~LoweredParameters() { state_->restore(); }

bool LoweredParameters::lower() { return state_->lower(); }

void LoweredParameters::restore() { state_->restore(); }

}  // namespace rehearse::parallel
