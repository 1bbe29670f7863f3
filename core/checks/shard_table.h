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

// What a rank has of a gradient, its rows or all of it, and what is right there. Both as numbers_of(); the rounding as
// numbers_of_bounds().
struct PartOfRank {
  int rank;
  at::Tensor values, reference, rounding;
};

struct RanksThatDiffer {
  std::vector<int> ranks;   // those with a wrong part, ascending
  std::string meaning;      // empty: what is wrong does not depend on the rank
  bool by_factors = false;  // each wrong part is a multiple of what is right
};

// Compares what each rank has of all gradients with the reference. nullopt if all is right. `are_rows`: the parts are
// rows. `scale`, `tolerance`: as in ratio_of().
std::optional<RanksThatDiffer> ranks_that_differ(const std::vector<PartOfRank>& parts, bool are_rows, double scale,
                                                 double tolerance);

}  // namespace rehearse::checks
