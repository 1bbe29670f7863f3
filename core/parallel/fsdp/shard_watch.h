// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "parallel/fsdp/shard_group.h"
#include "parallel/fsdp/sharded_unit.h"

namespace rehearse::parallel {

// Shows a sharded model to the checks that a world makes at each forward, if it looks at replicas. Forwards that record
// no graph are not looked at. No call blocks.
class ShardWatch {
 public:
  // `group` outlives it.
  explicit ShardWatch(const ShardGroup& group) : group_(&group) {}

  // Ranks that have the same rows compare them.
  void at_forward(const std::vector<ShardedUnit>& units);
  // The code of a unit begins in `forward`, which names the values that it uses.
  void at_use(const std::shared_ptr<const void>& forward, const ShardedUnit& unit);
  // Code has run with the unit's memory. Ranks compare what they had of each rank's rows with what that rank has.
  void after_use(const ShardedUnit& unit) const;
  // A backward has come to `forward`: this rank's rows must still be what it used. A change that counted a version is
  // refused elsewhere, if the backward needs the values.
  void at_backward(const void* forward) const;
  // The model is destroyed, after forwards that at_forward() has seen.
  void at_end(const std::vector<ShardedUnit>& units) const;

 private:
  struct Used {
    std::weak_ptr<const void> forward;
    const ShardedUnit* unit;
    std::uint64_t version;         // the unit's
    std::vector<at::Tensor> rows;  // copies, by parameter
  };

  void compare(const Used& used) const;

  const ShardGroup* group_;
  bool has_trained_ = false;
  std::vector<Used> used_;
};

}  // namespace rehearse::parallel
