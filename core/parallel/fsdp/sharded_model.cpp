// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/fsdp/sharded_model.h"

#include <algorithm>
#include <exception>
#include <utility>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/AutogradState.h>
#include <fmt/format.h>
#include <rehearse_internal/checks/rank_remarks.h>
#include <rehearse_internal/comm/group_identity.h>
#include <rehearse_internal/exec/check.h>
#include <rehearse_internal/operators/capture_mode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/nn/module.h>

#include "parallel/fsdp/backward_graph.h"
#include "parallel/fsdp/meta_parameters.h"
#include "parallel/fsdp/model_agreement.h"
#include "parallel/fsdp/unit_plan.h"

namespace rehearse::parallel {
namespace {

using torch::autograd::variable_list;

struct HookedParameter {
  std::weak_ptr<ShardedModel> model;
  std::size_t unit, parameter;
};

class BeforeGradient final : public torch::autograd::FunctionPreHook {
 public:
  explicit BeforeGradient(HookedParameter of) : of_(std::move(of)) {}
  variable_list operator()(const variable_list& gradients) override {
    if (const auto model = of_.model.lock()) model->before_gradient(of_.unit, of_.parameter);
    return gradients;
  }

 private:
  HookedParameter of_;
};

class AfterGradient final : public torch::autograd::FunctionPostHook {
 public:
  explicit AfterGradient(HookedParameter of) : of_(std::move(of)) {}
  variable_list operator()(const variable_list& outputs, const variable_list&) override {
    if (const auto model = of_.model.lock()) model->after_gradient(of_.unit, of_.parameter);
    return outputs;
  }

 private:
  HookedParameter of_;
};

// `accumulator`: the node that adds to the parameter's gradient. From now on, model->before_gradient() runs right
// before this node, and model->after_gradient() right after it, even if the added gradient is undefined.
void add_gradient_hooks(std::weak_ptr<ShardedModel> model, std::size_t unit, std::size_t parameter,
                        torch::autograd::Node& accumulator) {
  const HookedParameter hooked{std::move(model), unit, parameter};
  accumulator.add_pre_hook(std::make_unique<BeforeGradient>(hooked));
  accumulator.add_post_hook(std::make_unique<AfterGradient>(hooked));
}

void cast_output(at::Tensor& output, at::ScalarType dtype) {
  if (output.defined() && output.is_floating_point()) output = output.to(dtype);
}

void require_floating(const std::optional<FullyShardedMixedPrecision>& dtypes) {
  if (!dtypes) return;
  const auto check = [](const char* field, const std::optional<at::ScalarType>& dtype) {
    TORCH_CHECK_VALUE(!dtype || at::isFloatingType(*dtype), "FSDP: mixed_precision.", field, " is ", *dtype,
                      "; it must be a floating-point dtype");
  };
  check("param_dtype", dtypes->param_dtype);
  check("reduce_dtype", dtypes->reduce_dtype);
  check("output_dtype", dtypes->output_dtype);
}

}  // namespace

ShardedModel::ShardedModel(std::shared_ptr<torch::nn::Module> module, GroupPtr group, GroupPtr replicas,
                           FullyShardedOptions options)
    : module_(std::move(module)), options_(std::move(options)), group_(std::move(group), std::move(replicas)) {}

std::shared_ptr<ShardedModel> ShardedModel::make(std::shared_ptr<torch::nn::Module> module, GroupPtr group,
                                                 GroupPtr replicas, FullyShardedOptions options) {
  operators::refuse_in_capture("the constructor of FullyShardedDataParallel", "Make it before the captured function.");
  TORCH_CHECK(module, "FullyShardedDataParallel was given an empty module");
  TORCH_CHECK(group, "FullyShardedDataParallel was given an empty process group: is this rank a member?");
  const std::shared_ptr<ShardedModel> made(
      new ShardedModel(std::move(module), std::move(group), std::move(replicas), std::move(options)));
  made->shard();
  made->watch();
  return made;
}

ShardedModel::~ShardedModel() {
  leave_remark();
  if (std::uncaught_exceptions() == 0 && !backward_) shard_watch_.at_end(units_);
  for (auto& unit : units_) {
    unit.abandon();
    for (auto& each : unit.parameters()) each.leave(unit.text());
  }
}

// Gradients from inside no_sync() that no later backward has reduced never reach the optimizer.
void ShardedModel::leave_remark() const {
  auto* const remarks = std::uncaught_exceptions() > 0 ? nullptr : checks::rank_remarks();
  if (remarks == nullptr || group_.identity() == nullptr || backward_) return;
  if (std::ranges::none_of(units_, [](const auto& unit) { return unit.has_gradients(); })) return;
  remarks->remark(group_.identity()->global_rank(group_.rank()),
                  fmt::format("{} on group \"{}\" has gradients that nobody reduced, so its shards lack them. Make the "
                              "last forward and backward of each step outside of no_sync()",
                              group_.model(), group_.identity()->name));
}

void ShardedModel::shard() {
  require_floating(options_.mixed_precision);
  require_makeable(*module_, options_);
  auto plan = plan_units(*module_, options_);
  if (options_.from_meta) move_from_meta(plan, *options_.from_meta);
  const auto parameters = planned_parameters(plan);
  if (const auto* const identity = group_.identity())
    claims_.emplace(identity->global_rank(group_.rank()), parameters, "FullyShardedDataParallel");
  if (options_.init_sync) take_first_ranks_values(group_, *module_, plan, options_.parameters_to_ignore);
  if (options_.from_meta) make_rows(plan, *module_, *options_.from_meta, group_, options_.init_sync);
  ShardedUnit::Dtypes dtypes;
  if (options_.mixed_precision)
    dtypes = {options_.mixed_precision->param_dtype, options_.mixed_precision->reduce_dtype};
  units_.reserve(plan.size());
  for (auto& unit : plan) {
    auto& made = units_.emplace_back(std::move(unit.path), std::move(unit.parameters), group_, dtypes);
    if (!options_.init_sync) made.name_parameters_in_calls();
  }
  versions_ = std::make_shared<Versions>(units_.size());
  for (const auto& each : module_->parameters()) known_.push_back(each.unsafeGetTensorImpl());
}

void ShardedModel::watch() {
  guarded_.emplace(*this);
  // Only operators in this thread are seen, so autograd's device threads must not run the backward. Ranks that are
  // fibers never have such threads; a rank that is a process does.
  c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
  const auto add = [this](const at::Tensor& tensor, GuardedTensor guarded) {
    REHEARSE_CHECK(guarded_->add(tensor, guarded_tensors_.size()), units_[guarded.unit].text());
    guarded_tensors_.push_back(guarded);
  };
  for (std::size_t unit = 0; unit < units_.size(); ++unit) {
    auto& parameters = units_[unit].parameters();
    of_storages_.add_unit(units_[unit].text());
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      of_storages_.add_parameter(parameters[i].name(), parameters[i].whole());
      add(parameters[i].whole(), {unit, i, false});
      add(parameters[i].mark(), {unit, i, true});
      if (parameters[i].accumulator()) add_gradient_hooks(weak_from_this(), unit, i, *parameters[i].accumulator());
    }
  }
}

void ShardedModel::require_usable(const char* call) const {
  TORCH_CHECK(guarded_->is_seen_here(), "FSDP: ", call,
              " is called in a thread that did not make the FullyShardedDataParallel. FSDP does not see the "
              "operators of that thread. Make and use it in one thread");
  TORCH_CHECK(!backward_ || !backward_->runs.expired(), "FSDP: ", call,
              " comes after a backward that did not come to its end, and some gradients are lost. Call zero_grad() "
              "and begin the step again");
}

void ShardedModel::require_idle(const char* call) const {
  require_usable(call);
  TORCH_CHECK(depth_ == 0 && !backward_, "FSDP: ", call, " is called inside of ",
              depth_ > 0 ? "forward()" : "backward()", ". Call it between the two and the optimizer's step");
}

// Takes over changes of requires_grad, as PyTorch does, and refuses others. If the ranks' changes differ, they could
// sum the gradients of different parameters; so the unit's calls name theirs.
void ShardedModel::look_for_changes() {
  for (auto& unit : units_) {
    for (auto& each : unit.parameters()) {
      each.require_values(unit.text(), "forward()");
      each.require_unchanged(unit.text());
      if (each.follow_requires_grad()) unit.name_parameters_in_calls();
    }
  }
  const auto now = module_->parameters();
  const bool same = std::ranges::equal(
      now, known_, [](const auto& tensor, const auto* known) { return tensor.unsafeGetTensorImpl() == known; });
  TORCH_CHECK(same, "FSDP: the module has other parameters than when it was sharded: ", known_.size(), " then, ",
              now.size(), " now. Register parameters before FullyShardedDataParallel is made");
}

void ShardedModel::begin_forward() {
  operators::refuse_in_capture("the forward of a FullyShardedDataParallel",
                               "Compile the FullyShardedDataParallel itself: rehearse::compile(fsdp).");
  require_usable("forward()");
  TORCH_CHECK(!is_lent_,
              "FSDP: forward() is called by the function given to RankContext::check_gradients(), which one ",
              "rank alone runs. Compute the loss of all ranks' parts with the module itself");
  if (depth_ == 0 && !is_in_backward()) {
    look_for_changes();
    for (auto& unit : units_) unit.free();  // an optimizer may have stepped since the last forward
    order_.clear();
    next_in_order_ = 0;
    if (at::GradMode::is_enabled()) {
      to_visit_.clear();
      versions_ = std::make_shared<Versions>(units_.size());
      backward_reduces_ = reduces_;
      shard_watch_.at_forward(units_);
    }
  }
  if (depth_++ == 0) around_ = ShardedUnits::set_current(&of_storages_);
}

// Returns whether it was the outermost forward.
bool ShardedModel::leave_forward() noexcept {
  if (--depth_ > 0) return false;
  ShardedUnits::set_current(around_);
  return true;
}

void ShardedModel::end_forward(std::vector<at::Tensor>& outputs) {
  if (options_.mixed_precision && options_.mixed_precision->output_dtype) {
    for (auto& output : outputs) cast_output(output, options_.mixed_precision->output_dtype.value());
  }
  for (auto& output : outputs) {
    if (!output.defined() || !output.requires_grad() || !output.grad_fn()) continue;
    output.register_hook([model = weak_from_this(), versions = versions_](const at::Tensor&) {
      if (const auto held = model.lock()) held->enter_backward_of(*versions);
    });
  }
  if (!leave_forward() || is_in_backward()) return;
  current_ = kNone;
  last_order_ = std::move(order_);
  const bool no_backward = !at::GradMode::is_enabled();
  for (auto& unit : units_) {
    shard_watch_.after_use(unit);
    if (no_backward || !unit.is_whole() || is_freed_after_forward(unit)) unit.free();
  }
}

void ShardedModel::fail_forward() noexcept {
  if (!leave_forward() || is_in_backward()) return;
  current_ = kNone;
  order_.clear();
  for (auto& unit : units_) unit.abandon();
}

bool ShardedModel::is_freed_after_forward(const ShardedUnit& unit) const {
  return options_.reshard_after_forward.value_or(!unit.path().empty());
}

// While the code of a module runs, the modules around it are still in use.
bool ShardedModel::is_freed_by(std::size_t unit, std::size_t by) const {
  if (std::ranges::find(in_use_, unit) != in_use_.end()) return false;
  return unit != by && units_[unit].is_whole() && !is_inside(units_[by].path(), units_[unit].path());
}

void ShardedModel::refuse(const GuardedTensor& guarded, const c10::OperatorHandle& op, bool is_written) const {
  const auto& unit = units_[guarded.unit];
  const auto subject = fmt::format("parameter \"{}\" of {}", unit.parameters()[guarded.parameter].name(), unit.text());
  const auto& name = op.operator_name().name;
  TORCH_CHECK(!guarded.is_mark, "FSDP: ", name, " uses the gradient of ", subject,
              ", which the module does not have: gradients are reduced to those of the shards. Give fsdp.parameters() "
              "to optimizers, and call fsdp.zero_grad() and fsdp.clip_grad_norm_()");
  TORCH_CHECK(!is_written, "FSDP: ", name, " changes ", subject,
              " in place, and the change would be lost when its memory is freed. Change fsdp.parameters(), which are "
              "the shards, outside of forward() and backward()");
  TORCH_CHECK(false, "FSDP: ", name, " uses ", subject,
              " outside of forward() and backward(), where it is sharded. Give fsdp.parameters() to optimizers, save "
              "fsdp.full_state_dict(), and use the module's own parameters inside of forward() or forward_with() only");
}

void ShardedModel::before_use(const std::vector<Use>& uses, const c10::OperatorHandle& op) {
  const bool in_backward = is_in_backward();
  in_use_.clear();
  for (const Use& each : uses) {
    const GuardedTensor& guarded = guarded_tensors_[each.tag];
    if (guarded.is_mark || each.is_written || (!in_backward && depth_ == 0 && !is_lent_))
      refuse(guarded, op, each.is_written);
    if (std::ranges::find(in_use_, guarded.unit) == in_use_.end()) in_use_.push_back(guarded.unit);
  }
  if (is_lent_) return;
  for (const std::size_t unit : std::vector(in_use_)) {
    if (in_backward) {
      use_in_backward(unit);
    } else {
      use_in_forward(unit);
    }
  }
  for (const Use& each : uses) {
    const auto& unit = units_[guarded_tensors_[each.tag].unit];
    unit.parameters()[guarded_tensors_[each.tag].parameter].require_filled(unit.text());
  }
}

void ShardedModel::use_in_forward(std::size_t unit) {
  if (unit == current_ && units_[unit].is_whole()) return;
  if (unit != current_) enter_in_forward(unit);
  make_whole(units_[unit], units_);
  if (options_.forward_prefetch) prefetch_in_forward(unit);
}

void ShardedModel::enter_in_forward(std::size_t unit) {
  for (std::size_t i = 0; i < units_.size(); ++i) {
    if (!is_freed_after_forward(units_[i]) || !is_freed_by(i, unit)) continue;
    shard_watch_.after_use(units_[i]);
    units_[i].free();
  }
  current_ = unit;
  order_.push_back(unit);
  if (!at::GradMode::is_enabled()) return;
  to_visit_.push_back(unit);
  (*versions_)[unit] = units_[unit].content_version();
  shard_watch_.at_use(versions_, units_[unit]);
}

void ShardedModel::prefetch_in_forward(std::size_t unit) {
  const auto from = last_order_.begin() + static_cast<std::ptrdiff_t>(next_in_order_);
  const auto found = std::find(from, last_order_.end(), unit);
  if (found == last_order_.end()) return;
  next_in_order_ = static_cast<std::size_t>(found - last_order_.begin()) + 1;
  if (next_in_order_ < last_order_.size()) start_gather(units_[last_order_[next_in_order_]], units_);
}

}  // namespace rehearse::parallel
