// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/parallel/reducer_session.h>

#include <optional>
#include <unordered_map>
#include <utility>

#include <torch/csrc/autograd/engine.h>
#include <torch/nn/module.h>
#include <torch/csrc/distributed/c10d/logger.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include "parallel/ddp_sink.h"
#include "parallel/model_state.h"
#include "parallel/number_exchange.h"
#include "parallel/parameter_agreement.h"
#include "parallel/parameter_names.h"
#include "parallel/reducer_factory.h"

namespace rehearse::parallel {
namespace {

constexpr int kAuthoritativeRank = 0;
constexpr int kSkewToWarnOf = 1000;

}  // namespace

class ReducerSession::Impl {
 public:
  Impl(std::shared_ptr<torch::nn::Module> module, c10::intrusive_ptr<c10d::ProcessGroup> group,
       DistributedDataParallelOptions options)
      : module_(std::move(module)), group_(std::move(group)), options_(std::move(options)) {
    TORCH_CHECK(module_, "DistributedDataParallel was given an empty module");
    TORCH_CHECK(group_, "DistributedDataParallel was given an empty process group: is this rank a member?");
    ignored_ = ignored_names(*module_, options_.parameters_to_ignore);
    parameters_ = reduced_parameters(*module_, ignored_);
    exchange_.emplace(group_, parameters_.tensors[0].device());
    if (options_.init_sync) {
      verify_same_parameters(group_, parameters_);
      broadcast_state(group_, state(), kAuthoritativeRank);
    }
    reducer_ = make_reducer(parameters_, group_, options_);
    logger_ = std::make_shared<c10d::Logger>(reducer_);
    reducer_->set_logger(logger_);
    logger_->set_construction_data_and_log(module_->name(), /*device_ids=*/{}, /*output_device=*/-1,
                                           options_.broadcast_buffers, /*has_sync_bn=*/false,
                                           options_.static_graph);
  }

  void before_forward() {
    const bool trains = at::GradMode::is_enabled();
    if (trains && reduces_) {
      logger_->set_runtime_stats_and_log();
      reducer_->prepare_for_forward();
    }
    if (joining_) tell_joined_ranks();
    // Also where an unfinished reduction of the iteration before is found, so called in every iteration.
    if (trains) with_parameter_names(parameters_.names, [&] { return reducer_->rebuild_buckets(); });
    if (auto buffers = buffers_to_synchronize(); !buffers.empty()) {
      broadcast_state(group_, std::move(buffers), joining_ ? common_rank(true) : kAuthoritativeRank);
    }
    if (joining_) exchange_->sum(reduces_ ? 1 : 0);
  }

  bool wants_outputs() const noexcept {
    if (!at::GradMode::is_enabled()) return false;
    return options_.static_graph ? !*delayed_reduction_ : options_.find_unused_parameters;
  }

  void after_forward(std::vector<at::Tensor>& outputs) {
    const bool wanted = wants_outputs();
    broadcasts_buffers_ = at::GradMode::is_enabled() && reduces_;
    if (broadcasts_buffers_) {
      reducer_->prepare_for_backward(options_.static_graph ? std::vector<at::Tensor>{} : outputs);
    }
    if (!wanted) return;
    TORCH_CHECK(
        reduces_ || !options_.static_graph,
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

  bool set_gradient_sync(bool on) noexcept { return std::exchange(reduces_, on); }

  void join(const JoinOptions& options, const std::function<void()>& body) {
    TORCH_CHECK(!joining_, "DistributedDataParallel: join() inside of join()");
    logger_->set_uneven_input_join();
    joining_ = options;
    const Finally leave{[this] {
      joining_.reset();
      reducer_->set_forward_pass_work_handle({}, /*useStaticWorldSize=*/true);
    }};
    body();
    int shadowed = 0;
    while (exchange_->sum(0) > 0) {
      if (options.throw_on_early_termination) {
        exchange_->sum(1);
        TORCH_CHECK(false, "Rank ", group_->getRank(), " exhausted all inputs.");
      }
      if (shadowed++ == kSkewToWarnOf) {
        TORCH_WARN("Detected uneven input skew of greater than ", kSkewToWarnOf, ". This means that rank ",
                   group_->getRank(), " has at least ", kSkewToWarnOf,
                   " fewer inputs than other currently-active ranks. This level of skew could lead to "
                   "performance degradation during training.");
      }
      shadow_iteration();
    }
    // Who joined last has seen all updates.
    broadcast_state(group_, state(), common_rank(shadowed == 0));
  }

  void register_comm_hook(c10d::BuiltinCommHookType hook) {
    logger_->set_comm_hook(hook == c10d::BuiltinCommHookType::ALLREDUCE
                               ? "BuiltinCommHookType.ALLREDUCE"
                               : "BuiltinCommHookType.FP16_COMPRESS");
    reducer_->register_builtin_comm_hook(hook);
  }

  void register_comm_hook(std::unique_ptr<c10d::CommHookInterface> hook, const std::string& name) {
    TORCH_CHECK(hook, "DistributedDataParallel: register_comm_hook() was given an empty hook");
    logger_->set_comm_hook(name);
    reducer_->register_comm_hook(std::move(hook));
  }

  std::vector<at::Tensor> parameters() const { return module_parameters(*module_); }
  c10::DDPLoggingData logging_data() const { return logger_->get_ddp_logging_data(); }

  std::vector<GradientBucket> buckets() const {
    std::unordered_map<const c10::TensorImpl*, const std::string*> name_of;
    for (std::size_t i = 0; i < parameters_.names.size(); ++i) {
      name_of.emplace(parameters_.tensors[i].unsafeGetTensorImpl(), &parameters_.names[i]);
    }
    std::vector<GradientBucket> result;
    for (const auto& bucket : reducer_->get_grad_buckets(/*return_zero_tensors=*/false)) {
      auto& named = result.emplace_back();
      for (const auto& tensor : bucket.getParameters()) {
        named.parameters.push_back(*name_of.at(tensor.unsafeGetTensorImpl()));
      }
      if (bucket.getBuffer().defined()) named.bytes = bucket.getBuffer().nbytes();
    }
    return result;
  }

 private:
  struct Finally {
    std::function<void()> run;
    ~Finally() { run(); }
  };

  // Join.notify_join_context(): this rank still has inputs.
  void tell_joined_ranks() {
    const auto active = exchange_->start_sum(1);
    active->wait();
    TORCH_CHECK(!joining_->throw_on_early_termination || exchange_->sum(0) == 0,
                "Detected at least one rank that exhausted inputs. Throwing across all ranks.");
    reducer_->set_forward_pass_work_handle(active, joining_->divide_by_initial_world_size);
  }

  // _DDPJoinHook.main_hook(): the collectives of an iteration of the ranks that still have inputs.
  void shadow_iteration() {
    reducer_->rebuild_buckets();
    if (auto buffers = buffers_to_synchronize(); !buffers.empty()) {
      broadcast_state(group_, std::move(buffers), common_rank(false));
    }
    broadcasts_buffers_ = exchange_->sum(0) > 0;
    if (!broadcasts_buffers_) return;
    std::vector<c10::intrusive_ptr<c10::ivalue::Future>> reductions;
    auto buckets = reducer_->get_grad_buckets(/*return_zero_tensors=*/true);
    for (auto& bucket : buckets) reductions.push_back(reducer_->run_comm_hook(bucket));
    for (const auto& reduction : reductions) reduction->waitAndThrow();
    if (options_.find_unused_parameters) {
      std::vector<at::Tensor> used = {reducer_->get_local_used_map_on_device()};
      group_->allreduce(used)->wait();
    }
    reducer_->push_rebuilt_params_for_all_indices();
  }

  // The highest of the ranks that stand as candidates; there is at least one.
  int common_rank(bool candidate) const {
    return static_cast<int>(exchange_->max(candidate ? group_->getRank() : -1));
  }

  std::vector<at::Tensor> state() const {
    auto tensors = module_parameters(*module_, ignored_);
    if (options_.broadcast_buffers) {
      for (auto& buffer : module_buffers(*module_, ignored_)) tensors.push_back(std::move(buffer));
    }
    return tensors;
  }

  std::vector<at::Tensor> buffers_to_synchronize() const {
    if (!broadcasts_buffers_ || !options_.broadcast_buffers) return {};
    return module_buffers(*module_, ignored_);
  }

  std::shared_ptr<torch::nn::Module> module_;
  c10::intrusive_ptr<c10d::ProcessGroup> group_;
  DistributedDataParallelOptions options_;
  IgnoredNames ignored_;
  ReducedParameters parameters_;
  std::optional<NumberExchange> exchange_;
  std::shared_ptr<c10d::Reducer> reducer_;
  std::shared_ptr<c10d::Logger> logger_;

  // PyTorch's require_backward_grad_sync, require_forward_param_sync: only an iteration whose gradients were
  // reduced makes the next forward broadcast buffers.
  bool reduces_ = true;
  bool broadcasts_buffers_ = true;
  // static_graph: has the first backward been told to reduce at its end? Shared with nodes of graphs.
  std::shared_ptr<bool> delayed_reduction_ = std::make_shared<bool>(false);
  std::optional<JoinOptions> joining_;
};

ReducerSession::ReducerSession(std::shared_ptr<torch::nn::Module> module,
                               c10::intrusive_ptr<c10d::ProcessGroup> group,
                               DistributedDataParallelOptions options)
    : impl_(std::make_unique<Impl>(std::move(module), std::move(group), std::move(options))) {}
ReducerSession::~ReducerSession() = default;

void ReducerSession::before_forward() {
  impl_->before_forward();
}
bool ReducerSession::wants_outputs() const noexcept {
  return impl_->wants_outputs();
}
void ReducerSession::after_forward(std::vector<at::Tensor>& outputs) {
  impl_->after_forward(outputs);
}
bool ReducerSession::set_gradient_sync(bool on) noexcept {
  return impl_->set_gradient_sync(on);
}
void ReducerSession::join(const JoinOptions& options, const std::function<void()>& body) {
  impl_->join(options, body);
}
void ReducerSession::register_comm_hook(c10d::BuiltinCommHookType hook) {
  impl_->register_comm_hook(hook);
}
void ReducerSession::register_comm_hook(std::unique_ptr<c10d::CommHookInterface> hook,
                                        const std::string& name) {
  impl_->register_comm_hook(std::move(hook), name);
}
std::vector<at::Tensor> ReducerSession::parameters() const {
  return impl_->parameters();
}
std::vector<GradientBucket> ReducerSession::buckets() const {
  return impl_->buckets();
}
c10::DDPLoggingData ReducerSession::logging_data() const {
  return impl_->logging_data();
}

}  // namespace rehearse::parallel
