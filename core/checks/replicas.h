// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <rehearse/checks/model_state.h>
#include <rehearse/job/state_finding.h>

#include "checks/rounds.h"
#include "checks/watch/write_log.h"

namespace rehearse::checks {

// The values that ranks have under each name: a copy of each different value, and the ranks that have it. If all ranks
// agree, the table holds one copy of the model, whatever the number of ranks.
class ReplicaTable {
 public:
  // Rows of a whole tensor that is made of the ranks' shards.
  struct Shard {
    int rank;
    std::int64_t first, rows;
  };
  struct Version {
    at::Tensor copy;
    std::vector<int> ranks;
    std::vector<Shard> shards{};  // of all wholes with this value; empty: it is not made of shards
  };
  struct Row {
    std::string name;
    bool is_buffer = false;
    bool is_part = false;           // rows of a tensor, which only some ranks have
    std::vector<Version> versions;  // in order of arrival

    // The ranks of `here` that lack the tensor. Empty for a part.
    std::vector<int> missing(const std::vector<int>& here) const;
  };

  void add(int rank, const ModelState& state);
  void add_whole(const std::vector<Shard>& shards, const NamedTensor& whole);  // as that of the last shard's rank
  const std::vector<Row>& rows() const noexcept { return rows_; }
  std::vector<Row>& rows() noexcept { return rows_; }

 private:
  Row& row_of(const NamedTensor& tensor, int rank);
  Version& add(int rank, const NamedTensor& tensor);

  std::vector<Row> rows_;
  std::map<std::string, std::size_t> index_of_;  // index into rows_, by name
};

// "fc.weight[4:8]" for rows of a whole tensor; otherwise the tensor's name.
std::string name_in_table(const NamedTensor& tensor);

// The diagnosis of a row with several values, or without a value on some ranks.
struct OddRow {
  // If some ranks lack the value: these ranks, or the ranks that have the value if they are fewer. Else the ranks that
  // differ from the majority; all ranks, if no value has a majority.
  std::vector<int> ranks;
  std::string text;  // "rank 2 has a different "fc.weight" than ranks 0-1,3 (1 of 6 elements, ...)"
};
OddRow odd_of(const ReplicaTable::Row& row, const std::vector<int>& here);

// Adds those that are not there yet. `ranks` is ascending afterwards.
void add_ranks(std::vector<int>& ranks, const std::vector<int>& more);

struct ShownReplicas {
  ReplicaTable table;
  bool with_buffers = true;  // whether all ranks have shown their buffers
  std::string before;        // about the previous check, for the finding: "in check #3 all ranks were equal"
  // By rank: its writes to the tensors since its previous check. Only in runs that explain a finding.
  std::map<int, std::vector<Write>> writes;
};

using ReplicaRound = Round<ShownReplicas>;

inline constexpr const char* kReplicas = "replicas";

// Returns nullopt if all ranks that arrived have equal values.
std::optional<StateFinding> evaluate(const ReplicaRound& round);

}  // namespace rehearse::checks
