// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/parallel/reducer_session.h>

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include <torch/nn/module.h>
#include <torch/csrc/distributed/c10d/comm.hpp>
#include <torch/csrc/distributed/c10d/logger.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include "parallel/ddp_sink.h"
#include "parallel/model_state.h"
#include "parallel/parameter_agreement.h"
#include "parallel/parameter_names.h"

namespace rehearse::parallel {
namespace {

constexpr std::size_t kBroadcastBytes = std::size_t{250} * 1024 * 1024;
constexpr int kAuthoritativeRank = 0;

// The two limits of DDP's buckets (_ddp_init_helper of torch/nn/parallel/distributed.py).
struct BucketLimits {
  std::int64_t first = c10d::kDefaultFirstBucketBytes;
  std::int64_t cap = c10d::kDefaultBucketBytesCap;

  explicit BucketLimits(const DistributedDataParallelOptions& options) {
    if (options.bucket_cap_mb) cap = first = static_cast<std::int64_t>(*options.bucket_cap_mb * 1024 * 1024);
    if (options.first_bucket_bytes) first = *options.first_bucket_bytes;
    TORCH_CHECK_VALUE(cap > 0 && first > 0,
                      "DistributedDataParallel: buckets must hold at least one byte, but "
                      "bucket_cap_mb gives ",
                      cap, " and first_bucket_bytes ", first, ".");
  }
};

// Which parameters share a bucket in the first iteration, in the order in which buckets are reduced:
// gradients are expected in reverse order of use. Without find_unused_parameters the order is only guessed
// once: all gradients wait for the last one, and the reducer makes better buckets from the order that it saw.
std::vector<std::vector<std::size_t>> initial_buckets(const ReducedParameters& parameters,
                                                      const BucketLimits& limits,
                                                      bool find_unused_parameters) {
  std::vector<std::size_t> sizes = {std::numeric_limits<std::size_t>::max()};
  if (find_unused_parameters) {
    sizes = {static_cast<std::size_t>(limits.first), static_cast<std::size_t>(limits.cap)};
  }
  auto buckets = std::get<0>(
      c10d::compute_bucket_assignment_by_size(parameters.tensors, sizes, parameters.expect_sparse));
  std::reverse(buckets.begin(), buckets.end());
  return buckets;
}

std::shared_ptr<c10d::Reducer> make_reducer(const ReducedParameters& parameters,
                                            const c10::intrusive_ptr<c10d::ProcessGroup>& group,
                                            const DistributedDataParallelOptions& options) {
  const BucketLimits limits(options);
  std::unordered_map<std::size_t, std::string> names;
  for (std::size_t i = 0; i < parameters.names.size(); ++i) names.emplace(i, parameters.names[i]);
  return std::make_shared<c10d::Reducer>(
      parameters.tensors, initial_buckets(parameters, limits, options.find_unused_parameters), group,
      parameters.expect_sparse, limits.cap, options.find_unused_parameters, options.gradient_as_bucket_view,
      std::move(names), limits.first, /*skip_all_reduce_unused_params=*/false, /*use_python_reducer=*/false,
      /*bucket_bytes_cap_list=*/std::vector<std::int64_t>{});
}

}  // namespace

class ReducerSession::Impl {
 public:
  Impl(std::shared_ptr<torch::nn::Module> module, c10::intrusive_ptr<c10d::ProcessGroup> group,
       const DistributedDataParallelOptions& options)
      : module_(std::move(module)), group_(std::move(group)), options_(options) {
    TORCH_CHECK(module_, "DistributedDataParallel was given an empty module");
    TORCH_CHECK(group_, "DistributedDataParallel was given an empty process group: is this rank a member?");
    parameters_ = reduced_parameters(*module_);
    if (options_.init_sync) synchronize_replicas();
    reducer_ = make_reducer(parameters_, group_, options_);
    // The reducer calls its logger unasked when it seeks unused parameters.
    logger_ = std::make_shared<c10d::Logger>(reducer_);
    reducer_->set_logger(logger_);
  }

  void before_forward() {
    if (at::GradMode::is_enabled()) {
      reducer_->prepare_for_forward();
      // Also where an unfinished reduction of the iteration before is found, so called in every iteration.
      with_parameter_names(parameters_.names, [&] { return reducer_->rebuild_buckets(); });
    }
    if (trained_last_ && options_.broadcast_buffers) synchronize_buffers();
  }

  bool wants_outputs() const noexcept {
    return options_.find_unused_parameters && at::GradMode::is_enabled();
  }

  void after_forward(std::vector<at::Tensor>& outputs) {
    trained_last_ = at::GradMode::is_enabled();
    if (trained_last_) {
      reducer_->prepare_for_backward(outputs);
      if (options_.find_unused_parameters) pass_through_sink(outputs);
    }
  }

  std::vector<at::Tensor> parameters() const { return module_parameters(*module_); }

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
  void synchronize_replicas() {
    verify_same_parameters(group_, parameters_);
    auto states = module_parameters(*module_);
    if (options_.broadcast_buffers) {
      for (auto& buffer : module_buffers(*module_)) states.push_back(std::move(buffer));
    }
    broadcast(std::move(states));
  }

  void synchronize_buffers() { broadcast(module_buffers(*module_)); }

  void broadcast(std::vector<at::Tensor> tensors) {
    if (tensors.empty()) return;
    const at::NoGradGuard no_grad;
    for (auto& tensor : tensors) tensor = tensor.detach();
    c10d::broadcast_coalesced(group_, tensors, kBroadcastBytes, kAuthoritativeRank);
  }

  std::shared_ptr<torch::nn::Module> module_;
  c10::intrusive_ptr<c10d::ProcessGroup> group_;
  DistributedDataParallelOptions options_;
  ReducedParameters parameters_;
  std::shared_ptr<c10d::Reducer> reducer_;
  std::shared_ptr<c10d::Logger> logger_;
  // Was the last forward one with grad mode? PyTorch's require_forward_param_sync: evaluation moves no
  // buffers, so the forward after one needs no broadcast.
  bool trained_last_ = true;
};

ReducerSession::ReducerSession(std::shared_ptr<torch::nn::Module> module,
                               c10::intrusive_ptr<c10d::ProcessGroup> group,
                               DistributedDataParallelOptions options)
    : impl_(std::make_unique<Impl>(std::move(module), std::move(group), options)) {}
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
std::vector<at::Tensor> ReducerSession::parameters() const {
  return impl_->parameters();
}
std::vector<GradientBucket> ReducerSession::buckets() const {
  return impl_->buckets();
}

}  // namespace rehearse::parallel
