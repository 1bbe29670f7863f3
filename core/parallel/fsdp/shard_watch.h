// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "parallel/fsdp/shard_group.h"
#include "parallel/fsdp/sharded_unit.h"

namespace rehearse::parallel {

// Passes a sharded model's forwards to a world's automatic checks, and the model's state if the checks compare
// replicas. Forwards that record no graph are left out. No call blocks.
class ShardWatch {
 public:
  // `group` must outlive it.
  explicit ShardWatch(const ShardGroup& group) : group_(&group) {}

  // Call it when a forward that records a graph begins. Compares shards between ranks that have the same shard.
  void at_forward(const std::vector<ShardedUnit>& units);
  // Call it when the code of a unit begins. `forward`: the forward in progress; it identifies the values that the code
  // uses.
  void at_use(const std::shared_ptr<const void>& forward, const ShardedUnit& unit);
  // Call it after code has used the unit's memory. This rank has used gathered copies of the other ranks' rows.
  // Compares each copy with the rows that its owner holds.
  void after_use(const ShardedUnit& unit) const;
  // Call it when a backward has reached `forward`. Checks that this rank's rows are still what that forward used.
  // Leaves out units whose version has changed, because ShardedModel refuses these itself.
  void at_backward(const void* forward) const;
  // Call it when the model is destroyed. If at_forward() has seen a forward, compares shards as at_forward() does.
  void at_end(const std::vector<ShardedUnit>& units) const;

 private:
  struct Used {
    std::weak_ptr<const void> forward;
    const ShardedUnit* unit;
    std::uint64_t version;         // the unit's
    std::vector<at::Tensor> rows;  // copies, one per parameter
  };

  void compare(const Used& used) const;

  const ShardGroup* group_;
  bool has_trained_ = false;
  std::vector<Used> used_;
};

}  // namespace rehearse::parallel
