// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

namespace rehearse::comm {
class DescribedBackend;
struct GroupIdentity;
}  // namespace rehearse::comm

namespace rehearse::parallel {

// The groups of a sharded model: the ranks that have different shards and, in hybrid sharding, the ranks that have the
// same shard. On groups of Rehearse's, calls carry names, so that reports name units, and calls of different units do
// not match each other. No call blocks.
class ShardGroup {
 public:
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;
  using GroupPtr = c10::intrusive_ptr<c10d::ProcessGroup>;

  // `replicas`: null if only one rank has each shard.
  ShardGroup(GroupPtr shards, GroupPtr replicas);

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  // The number of ranks over which a gradient is averaged.
  int ranks_of_mean() const noexcept { return size_ * (replicas_ ? replicas_->getSize() : 1); }
  // In half precision, gradients are divided by this number before they are summed, so that the sum does not overflow.
  // It is a power of two, less than twice the square root of ranks_of_mean().
  double half_divisor() const noexcept;
  const GroupPtr& shards() const noexcept { return shards_; }
  const GroupPtr& replicas() const noexcept { return replicas_; }
  bool is_replicated() const noexcept { return replicas_ && replicas_->getSize() > 1; }
  // Null if the group is not Rehearse's.
  const comm::GroupIdentity* identity() const noexcept;
  // Null if the group is not Rehearse's, or if no other rank has the same shard.
  const comm::GroupIdentity* replicas_identity() const noexcept;
  // "FSDP"; "FSDP #2" for a second model on the group.
  const std::string& model() const noexcept { return model_; }

  // `what`: describes the contents of the tensors: `unit "layers.0": parameters`.
  WorkPtr all_gather(at::Tensor output, at::Tensor input, const std::string& what) const;
  WorkPtr reduce_scatter(at::Tensor output, at::Tensor input, const std::string& what) const;  // sums
  WorkPtr all_reduce_replicas(const at::Tensor& tensor, const std::string& what) const;        // sums
  // Replaces a number by the sum, or the maximum, over the ranks of shards().
  WorkPtr all_reduce_norm(const at::Tensor& tensor, bool takes_largest, const std::string& what) const;

 private:
  GroupPtr shards_, replicas_;
  int rank_, size_;
  std::string model_;
};

}  // namespace rehearse::parallel
