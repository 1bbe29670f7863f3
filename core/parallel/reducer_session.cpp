// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/clone.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <rehearse_internal/checks/rank_remarks.h>
#include <rehearse_internal/checks/world_checks.h>
#include <rehearse_internal/comm/described_backend.h>
#include <rehearse_internal/exec/world_number.h>
#include <rehearse_internal/libtorch/nodes.h>
#include <rehearse_internal/operators/capture_mode.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>

#include "checks/values/module_tensors.h"
#include "parallel/missing_gradients.h"
#include "parallel/model/reducer_buckets.h"
#include "parallel/parameter_agreement.h"
#include "parallel/reducer_factory.h"
#include "parallel/reducer_session_impl.h"

namespace rehearse::parallel {
namespace {

// Written as a node, because torch::autograd::Function takes no list of tensors. Gradients that the loss did not
// produce stay undefined, because the reducer distinguishes them from zeros.
class DdpSinkBackward : public torch::autograd::Node {
 public:
  explicit DdpSinkBackward(std::function<void()> on_backward) : on_backward_(std::move(on_backward)) {}

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    on_backward_();
    return std::move(gradients);
  }
  std::string name() const override { return "DDPSinkBackward"; }

 private:
  std::function<void()> on_backward_;
};

// Passes all outputs that have a grad_fn through one autograd node, and replaces them by copies (_DDPSink in
// torch/nn/parallel/distributed.py). If the loss leaves out an output, the parameters behind that output are still in
// the graph, so the reducer waits for them. The common node lets backward reach these parameters, with an undefined
// gradient. Backward calls `on_backward` when it reaches the node.
void pass_through_sink(std::vector<at::Tensor>& outputs, std::function<void()> on_backward) {
  const auto sink = libtorch::make_node<DdpSinkBackward>(std::move(on_backward));
  for (auto& output : outputs) {
    if (!output.defined() || !output.grad_fn()) continue;
    at::Tensor passed;
    {
      const at::NoGradGuard no_grad;
      passed = output.clone();
    }
    sink->add_next_edge(torch::autograd::impl::gradient_edge(output));
    torch::autograd::create_gradient_edge(passed, sink);
    output = std::move(passed);
  }
}

constexpr int kAuthoritativeRank = 0;
constexpr std::string_view kUnreducedBackward =
    " did not reduce the gradients of a backward, because an earlier backward had used the reduction that the last "
    "forward prepared. Call backward() once for all losses, or after each forward";

}  // namespace

ReducerSession::Impl::Impl(std::shared_ptr<torch::nn::Module> module, c10::intrusive_ptr<c10d::ProcessGroup> group,
                           DistributedDataParallelOptions options)
    : module_(std::move(module)), group_(std::move(group)), options_(std::move(options)) {
  TORCH_CHECK(module_, "DistributedDataParallel was given an empty module");
  TORCH_CHECK(group_, "DistributedDataParallel was given an empty process group: is this rank a member?");
  TORCH_CHECK_VALUE(!options_.mixed_precision || !options_.find_unused_parameters || options_.static_graph,
                    "DistributedDataParallel: mixed_precision does not go with find_unused_parameters, which "
                    "does not see parameters of another dtype; static_graph finds unused ones too.");
  const auto backend = group_->getDefaultBackend();
  if (const auto* const described = dynamic_cast<comm::DescribedBackend*>(backend.get()))
    identity_ = &described->identity();
  made_in_ = exec::world_number();
  ignored_ = ignored_names(*module_, options_.parameters_to_ignore);
  parameters_ = reduced_parameters(*module_, ignored_);
  if (identity_ != nullptr) claims_.emplace(identity_->global_rank(group_->getRank()), parameters_);
  exchange_.emplace(group_, parameters_.tensors[0].device());
  if (options_.init_sync) {
    verify_same_parameters(group_, parameters_);
    broadcast_state(group_, state(), kAuthoritativeRank);
  }
  set_up_reducer();
  gradients_when_made_ = changes_of_gradients();
  check_construction();
}

void ReducerSession::Impl::set_up_reducer() {
  reducer_ = make_reducer(parameters_, group_, options_);
  bucket_names_.emplace(*group_);
  bucket_names_->set(*reducer_, parameters_);
  logger_ = std::make_shared<c10d::Logger>(reducer_);
  reducer_->set_logger(logger_);
  logger_->set_construction_data_and_log(checks::name_of(*module_), /*device_ids=*/{}, /*output_device=*/-1,
                                         options_.broadcast_buffers, /*has_sync_bn=*/false, options_.static_graph);
  if (options_.mixed_precision) {
    logger_->set_comm_hook("_reducer_allreduce_and_upcast_hook");
    lowered_.emplace(*options_.mixed_precision, *module_, ignored_, parameters_, group_, reducer_);
  }
}

void ReducerSession::Impl::before_forward() {
  operators::refuse_in_capture("the forward of a DistributedDataParallel",
                               "Compile the DistributedDataParallel itself: rehearse::compile(ddp).");
  const bool trains = at::GradMode::is_enabled();
  // Buffers that nobody broadcasts may follow each rank's own data as soon as forwards train, but must begin equal.
  const bool buffers_begin = !options_.broadcast_buffers && use_ <= Use::without_gradients;
  use_ = std::max(use_, !trains ? Use::without_gradients : reduces_ ? Use::reduced : Use::without_reduction);
  was_reduced_ = was_reduced_ && (reduces_ || !trains) && !joining_ && !has_hook_;
  if (trains && reduces_) {
    logger_->set_runtime_stats_and_log();
    reducer_->prepare_for_forward();
  }
  if (joining_) tell_joined_ranks();
  // This also finds an unfinished reduction of the previous iteration, so do it in every iteration that trains.
  if (trains) rebuild_buckets();
  auto buffers = buffers_to_synchronize();
  const bool buffers_are_equal = !buffers.empty();
  if (buffers_are_equal) broadcast_state(group_, std::move(buffers), joining_ ? common_rank(true) : kAuthoritativeRank);
  if (buffers_begin) was_reduced_ = false;  // a program may give its ranks different buffers on purpose
  if (trains && reduces_) check_state(buffers_are_equal || buffers_begin);
  if (joining_) exchange_->sum(reduces_ ? 1 : 0);
  lowered_by_forward_ = lowered_ && lowered_->lower();
}

void ReducerSession::Impl::rebuild_buckets() {
  try {
    if (reducer_->rebuild_buckets()) bucket_names_->set(*reducer_, parameters_);
  } catch (c10::Error& error) {
    // The reducer names parameters only by index.
    if (auto missing = unfinished(); !missing.empty()) error.add_context(std::move(missing));
    throw;
  }
}

std::string ReducerSession::Impl::unfinished() const {
  auto text = missing_gradients(*reducer_, parameters_.names);
  return text.empty() || identity_ == nullptr ? text : fmt::format("{} on group \"{}\"", text, identity_->name);
}

ReducerSession::Impl::~Impl() {
  // A rank that unwinds may not have finished its last step, so it reports nothing.
  if (identity_ == nullptr || exec::world_number() != made_in_ || std::uncaught_exceptions() > 0) return;
  try {
    if (auto* const checks = checks::world_checks()) leave_to(*checks);
    if (auto* const remarks = checks::rank_remarks()) leave_to(*remarks);
  } catch (const std::exception&) {
    // If this fails, for example without memory for a copy, skip the checks.
  }
}

// Grows with each gradient that comes or changes.
std::size_t ReducerSession::Impl::changes_of_gradients() const {
  std::size_t changes = 0;
  for (const auto& each : parameters_.tensors) {
    if (const auto& grad = each.grad(); grad.defined()) changes += 1 + (grad.is_inference() ? 0 : grad._version());
  }
  return changes;
}

std::string unreduced_text(Use use) {
  constexpr std::string_view kCall = "Call the DistributedDataParallel instead of the module";
  constexpr std::string_view kReduce =
      "Make the last forward and backward of each step outside of no_sync(), "
      "unless the program reduces them itself";
  const auto text = [](std::string_view how, std::string_view cure) {
    return fmt::format("was {}, but its module has gradients, so DDP did not reduce them. {}", how, cure);
  };
  if (use == Use::none) return text("never called", kCall);
  return use == Use::without_gradients ? text("called with grad mode off only", kCall)
                                       : text("called in no_sync() only", kReduce);
}

// Compares the replicas after the last step, because no later forward does. If no forward has compared them either,
// this compares them only if the constructor made them equal (init_sync) and training may have changed them since.
void ReducerSession::Impl::leave_to(checks::WorldChecks& checks) const {
  const int rank = identity_->global_rank(group_->getRank());
  const bool was_trained = use_ == Use::none || changes_of_gradients() > gradients_when_made_;
  const bool was_equal = !checked_as_.empty() || (options_.init_sync && was_trained);
  // unreduced_text() says enough, unless the program asks for the check.
  const bool is_remarked = use_ != Use::reduced && !checks.automatic().replicas.has_value();
  if (!was_equal || is_remarked) return;
  const auto model = bucket_names_->model_text();
  checks.at_end(rank, *module_, {options_.parameters_to_ignore, false, identity_->ranks, model, identity_->id});
}

// Leaves notes on why others may wait for this rank in a bucket's all-reduce, and on why its replica may differ from
// theirs.
void ReducerSession::Impl::leave_to(checks::RankRemarks& remarks) const {
  const int rank = identity_->global_rank(group_->getRank());
  auto text = unfinished();
  if (text.empty() && waits_for_backward(*reducer_))
    text = fmt::format("the last forward of its DDP on group \"{}\" had no backward", identity_->name);
  if (!text.empty()) remarks.note(rank, std::move(text));
  if (use_ == Use::reduced || identity_->ranks.size() == 1 || changes_of_gradients() <= gradients_when_made_) return;
  remarks.remark(rank, fmt::format("{} {}", bucket_names_->model_text(), unreduced_text(use_)));
}

std::optional<at::ScalarType> ReducerSession::Impl::input_dtype() const noexcept {
  return options_.mixed_precision ? options_.mixed_precision->param_dtype : std::nullopt;
}

bool ReducerSession::Impl::uses_sink() const noexcept {
  return options_.static_graph ? !*delayed_reduction_ : options_.find_unused_parameters;
}

bool ReducerSession::Impl::wants_outputs() const noexcept {
  return at::GradMode::is_enabled() && (uses_sink() || reduces_);
}

// The reducer reduces the first backward after a forward, whichever forward that backward belongs to. Remarks a
// backward that comes later and changes gradients. (A call of torch::autograd::grad() changes none.)
void ReducerSession::Impl::watch_backward(const at::Tensor& output) {
  if (identity_ == nullptr || !output.defined() || !output.grad_fn()) return;
  output.register_hook([this, reducer = std::weak_ptr(reducer_)](const at::Tensor&) {
    const auto held = reducer.lock();
    if (held == nullptr || waits_for_backward(*held) || !unfinished().empty()) return;
    torch::autograd::Engine::get_default_engine().queue_callback([this, reducer, before = changes_of_gradients()] {
      if (reducer.expired() || changes_of_gradients() == before) return;
      was_reduced_ = false;
      auto* const remarks = checks::rank_remarks();
      if (remarks == nullptr) return;
      remarks->remark(identity_->global_rank(group_->getRank()),
                      fmt::format("{}{}", bucket_names_->model_text(), kUnreducedBackward));
    });
  });
}

void ReducerSession::Impl::after_forward(std::vector<at::Tensor>& outputs) {
  const bool wanted = at::GradMode::is_enabled() && uses_sink();
  broadcasts_buffers_ = at::GradMode::is_enabled() && reduces_;
  if (broadcasts_buffers_) {
    reducer_->prepare_for_backward(options_.static_graph ? std::vector<at::Tensor>{} : outputs);
    for (const auto& output : outputs) watch_backward(output);
  }
  // A forward without grad mode has no backward, so restore the parameters that it has lowered. Leave parameters that
  // an earlier forward has lowered, because that forward's backward may still come and needs the same values.
  if (lowered_by_forward_ && !at::GradMode::is_enabled()) lowered_->restore();
  if (!wanted) return;
  TORCH_CHECK(reduces_ || !options_.static_graph,
              "DistributedDataParallel with static_graph learns the graph in the first iteration, which must "
              "reduce its gradients: make it outside of no_sync().");
  pass_through_sink(outputs, [reducer = std::weak_ptr<c10d::Reducer>(reducer_),
                              delayed = options_.static_graph ? delayed_reduction_ : nullptr] {
    if (!delayed || *delayed) return;
    *delayed = true;
    torch::autograd::Engine::get_default_engine().queue_callback([reducer] {
      if (const auto held = reducer.lock()) held->delay_all_reduce();
    });
  });
}

void ReducerSession::Impl::register_comm_hook(c10d::BuiltinCommHookType hook) {
  logger_->set_comm_hook(hook == c10d::BuiltinCommHookType::ALLREDUCE ? "BuiltinCommHookType.ALLREDUCE"
                                                                      : "BuiltinCommHookType.FP16_COMPRESS");
  reducer_->register_builtin_comm_hook(hook);
}

void ReducerSession::Impl::register_comm_hook(std::unique_ptr<c10d::CommHookInterface> hook, const std::string& name) {
  TORCH_CHECK(hook, "DistributedDataParallel: register_comm_hook() was given an empty hook");
  logger_->set_comm_hook(name);
  has_hook_ = true;
  reducer_->register_comm_hook(std::move(hook));
}

std::vector<GradientBucket> ReducerSession::Impl::buckets() const {
  std::unordered_map<const c10::TensorImpl*, const std::string*> name_of;
  for (std::size_t i = 0; i < parameters_.names.size(); ++i) {
    name_of.emplace(parameters_.tensors[i].unsafeGetTensorImpl(), &parameters_.names[i]);
  }
  std::vector<GradientBucket> result;
  for (const auto& bucket : buckets_of(*reducer_)) {
    auto& named = result.emplace_back();
    for (const auto& tensor : bucket.parameters) {
      named.parameters.push_back(*name_of.at(tensor.unsafeGetTensorImpl()));
    }
    if (bucket.buffer.defined()) named.bytes = bucket.buffer.nbytes();
  }
  return result;
}

std::vector<at::Tensor> ReducerSession::Impl::state() const {
  auto tensors = module_parameters(*module_, ignored_);
  if (options_.broadcast_buffers) {
    for (auto& buffer : module_buffers(*module_, ignored_)) tensors.push_back(std::move(buffer));
  }
  return tensors;
}

std::vector<at::Tensor> ReducerSession::Impl::buffers_to_synchronize() const {
  if (!broadcasts_buffers_ || !options_.broadcast_buffers) return {};
  return module_buffers(*module_, ignored_);
}

void ReducerSession::Impl::check_construction() const {
  auto* const checks = checks::world_checks();
  if (checks == nullptr || identity_ == nullptr || !options_.init_sync) return;
  const int rank = identity_->global_rank(group_->getRank());
  const auto model = bucket_names_->model_text();
  checks->at_construction(rank, *module_,
                          {options_.parameters_to_ignore, false, identity_->ranks, model, identity_->id});
}

// Does nothing unless the world asks for checks of replicas or of draws. Within join(), compares nothing, because a
// rank without inputs makes no forwards, and takes the state of the others at the end.
void ReducerSession::Impl::check_state(bool buffers_are_equal) {
  auto* const checks = checks::world_checks();
  if (checks == nullptr || !(checks->automatic().compares_replicas() || checks->automatic().draws)) return;
  if (identity_ == nullptr) return;
  checked_as_ = bucket_names_->model_text();
  if (joining_) return;
  const int rank = identity_->global_rank(group_->getRank());
  checks->at_forward(rank, *module_,
                     {options_.parameters_to_ignore, buffers_are_equal, identity_->ranks, checked_as_, identity_->id,
                      std::exchange(was_reduced_, true)});
}

ReducerSession::ReducerSession(std::shared_ptr<torch::nn::Module> module, c10::intrusive_ptr<c10d::ProcessGroup> group,
                               DistributedDataParallelOptions options)
    : impl_(std::make_unique<Impl>(std::move(module), std::move(group), std::move(options))) {}
ReducerSession::~ReducerSession() = default;

void ReducerSession::before_forward() { impl_->before_forward(); }
std::optional<at::ScalarType> ReducerSession::input_dtype() const noexcept { return impl_->input_dtype(); }
bool ReducerSession::wants_outputs() const noexcept { return impl_->wants_outputs(); }
void ReducerSession::after_forward(std::vector<at::Tensor>& outputs) { impl_->after_forward(outputs); }
bool ReducerSession::set_gradient_sync(bool on) noexcept { return impl_->set_gradient_sync(on); }
void ReducerSession::join(const JoinOptions& options, const std::function<void()>& body) { impl_->join(options, body); }
void ReducerSession::register_comm_hook(c10d::BuiltinCommHookType hook) { impl_->register_comm_hook(hook); }
void ReducerSession::register_comm_hook(std::unique_ptr<c10d::CommHookInterface> hook, const std::string& name) {
  impl_->register_comm_hook(std::move(hook), name);
}
std::vector<at::Tensor> ReducerSession::parameters() const { return impl_->parameters(); }
std::vector<GradientBucket> ReducerSession::buckets() const { return impl_->buckets(); }
bool ReducerSession::broadcasts_buffers() const noexcept { return impl_->broadcasts_buffers(); }
c10::DDPLoggingData ReducerSession::logging_data() const { return impl_->logging_data(); }

}  // namespace rehearse::parallel
