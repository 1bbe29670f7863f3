// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/fsdp/shard_group.h"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rehearse_internal/comm/described_backend.h>

namespace rehearse::parallel {
namespace {

comm::DescribedBackend* described_backend(c10d::ProcessGroup& group) {
  return dynamic_cast<comm::DescribedBackend*>(group.getDefaultBackend().get());
}

// Names the payload of a call until the call has been made.
class SentName {
 public:
  SentName(c10d::ProcessGroup& group, const at::Tensor& tensor, const std::string& name)
      : backend_(described_backend(group)), tensor_(tensor.unsafeGetTensorImpl()) {
    if (backend_ != nullptr) backend_->name_payload(tensor, name);
  }
  SentName(const SentName&) = delete;
  SentName& operator=(const SentName&) = delete;
  ~SentName() {
    if (backend_ != nullptr) backend_->forget_payload(tensor_);
  }

 private:
  comm::DescribedBackend* const backend_;
  const c10::TensorImpl* const tensor_;
};

}  // namespace

ShardGroup::ShardGroup(GroupPtr shards, GroupPtr replicas)
    : shards_(std::move(shards)), replicas_(std::move(replicas)), rank_(shards_->getRank()), size_(shards_->getSize()) {
  auto* const backend = described_backend(*shards_);
  const int number = backend != nullptr ? backend->count_model() : 1;
  model_ = number == 1 ? "FSDP" : fmt::format("FSDP #{}", number);
}

const comm::GroupIdentity* ShardGroup::identity() const noexcept {
  const auto* const backend = described_backend(*shards_);
  return backend != nullptr ? &backend->identity() : nullptr;
}

const comm::GroupIdentity* ShardGroup::replicas_identity() const noexcept {
  const auto* const backend = is_replicated() ? described_backend(*replicas_) : nullptr;
  return backend != nullptr ? &backend->identity() : nullptr;
}

// As PyTorch's _get_gradient_divide_factors().
double ShardGroup::half_divisor() const noexcept {
  const int ranks = ranks_of_mean();
  int divisor = 1;
  while (ranks % divisor == 0 && ranks / divisor > divisor) divisor *= 2;
  return divisor;
}

auto ShardGroup::all_gather(at::Tensor output, at::Tensor input, const std::string& what) const -> WorkPtr {
  const SentName name(*shards_, input, model_ + " " + what);
  return shards_->_allgather_base(output, input);
}

auto ShardGroup::reduce_scatter(at::Tensor output, at::Tensor input, const std::string& what) const -> WorkPtr {
  const SentName name(*shards_, input, model_ + " " + what);
  return shards_->_reduce_scatter_base(output, input);
}

auto ShardGroup::all_reduce_replicas(const at::Tensor& tensor, const std::string& what) const -> WorkPtr {
  const SentName name(*replicas_, tensor, model_ + " " + what);
  std::vector<at::Tensor> tensors = {tensor};
  return replicas_->allreduce(tensors);
}

auto ShardGroup::all_reduce_norm(const at::Tensor& tensor, bool takes_largest, const std::string& what) const
    -> WorkPtr {
  const SentName name(*shards_, tensor, model_ + ": " + what);
  c10d::AllreduceOptions options;
  if (takes_largest) options.reduceOp = c10d::ReduceOp::MAX;
  std::vector<at::Tensor> tensors = {tensor};
  return shards_->allreduce(tensors, options);
}

}  // namespace rehearse::parallel
