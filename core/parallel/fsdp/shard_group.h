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

// The groups of a sharded model: the ranks that have a shard each, and in hybrid sharding those that have the same
// shard. Calls carry names, where the group is Rehearse's, so that reports name units, and calls of different units do
// not pass for the same. No call blocks.
class ShardGroup {
 public:
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;
  using GroupPtr = c10::intrusive_ptr<c10d::ProcessGroup>;

  // `replicas`: null, if each shard is on one rank alone.
  ShardGroup(GroupPtr shards, GroupPtr replicas);

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  // A gradient is the mean over so many ranks.
  int ranks_of_mean() const noexcept { return size_ * (replicas_ ? replicas_->getSize() : 1); }
  // By what gradients in half precision are divided before they are added up, so that their sum does not overflow: a
  // power of two, near the root of ranks_of_mean().
  double half_divisor() const noexcept;
  const GroupPtr& shards() const noexcept { return shards_; }
  const GroupPtr& replicas() const noexcept { return replicas_; }
  bool is_replicated() const noexcept { return replicas_ && replicas_->getSize() > 1; }
  // Null: a group that is not Rehearse's.
  const comm::GroupIdentity* identity() const noexcept;
  // Null, too: no other rank has the same shard.
  const comm::GroupIdentity* replicas_identity() const noexcept;
  // "FSDP", and "FSDP #2" of a second model on the group.
  const std::string& model() const noexcept { return model_; }

  // `what`: what the tensors hold, as `unit "layers.0": parameters`.
  WorkPtr all_gather(at::Tensor output, at::Tensor input, const std::string& what) const;
  WorkPtr reduce_scatter(at::Tensor output, at::Tensor input, const std::string& what) const;  // sums
  WorkPtr all_reduce_replicas(const at::Tensor& tensor, const std::string& what) const;        // sums
  // Makes one number the sum, or the largest, of those of all ranks that have a shard.
  WorkPtr all_reduce_norm(const at::Tensor& tensor, bool takes_largest, const std::string& what) const;

 private:
  GroupPtr shards_, replicas_;
  int rank_, size_;
  std::string model_;
};

}  // namespace rehearse::parallel
