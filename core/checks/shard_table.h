// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <rehearse/checks/model_state.h>

#include "checks/replicas.h"

namespace rehearse::checks {

// The shards of ranks, collected until all ranks have arrived and the whole can be assembled.
class ShardTable {
 public:
  // Adds copies of the state's shards and of their gradients.
  void add(int rank, const ModelState& state);

  // The whole values under their names. Throws std::invalid_argument, which names the first missing row, if no rank has
  // shown some rows.
  std::vector<NamedTensor> values() const;

  // Adds the whole values to the table, or the whole gradients of the parameters that require grad. If several ranks
  // have the same rows, adds as many whole tensors. Each counts as that of a rank that has the last of its rows.
  void add_values_to(ReplicaTable& table) const { add_to(table, &Shard::value); }
  void add_gradients_to(ReplicaTable& table) const { add_to(table, &Shard::gradient); }

 private:
  struct Shard {
    int rank;
    at::Tensor value, gradient;
  };
  struct Whole {
    std::string name;
    std::vector<std::int64_t> sizes;
    bool is_trained = false;
    std::map<std::int64_t, std::vector<Shard>> shards;  // by first row; the shards of a row in order of arrival
  };

  void add_to(ReplicaTable& table, at::Tensor Shard::* which) const;
  Whole& whole_of(const NamedTensor& tensor);

  std::vector<Whole> wholes_;  // in the order of the first state that was added
};

// A gradient that is made of the ranks' shards.
struct Sharded {
  const std::vector<ReplicaTable::Shard>& shards;
  const at::Tensor& gradient;
  const at::Tensor& reference;
};

struct RanksThatDiffer {
  std::vector<int> ranks;  // empty: all, each by another factor
  std::string meaning;
};

// Compares the rows that each rank has of all gradients with the reference. nullopt if what differs does not depend on
// the rank. `scale`, `tolerance`: as in ratio_of().
std::optional<RanksThatDiffer> ranks_that_differ(const std::vector<Sharded>& all, double scale, double tolerance);

}  // namespace rehearse::checks
