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

// What ranks have under each name: a copy of each value that there is, and who has it. Where all are equal it holds one
// copy of the model, whatever the number of ranks.
class ReplicaTable {
 public:
  struct Version {
    at::Tensor copy;
    std::vector<int> ranks;
  };
  struct Row {
    std::string name;
    bool is_buffer = false;
    bool is_part = false;           // rows of a tensor, which not all ranks have
    std::vector<Version> versions;  // in order of their coming

    // The ranks of `here` that lack it.
    std::vector<int> missing(const std::vector<int>& here) const;
  };

  void add(int rank, const ModelState& state);
  const std::vector<Row>& rows() const noexcept { return rows_; }

 private:
  Row& row_of(const NamedTensor& tensor, int rank);

  std::vector<Row> rows_;
  std::map<std::string, std::size_t> places_;  // of rows, by name
};

// What is to be said of a row of which ranks have several values, or of which some have none.
struct OddRow {
  std::vector<int> ranks;  // who differs; where no value is that of most ranks, all
  std::string text;        // "rank 2 has another "fc.weight" than ranks 0-1,3 (1 of 6 elements, ...)"
};
OddRow odd_of(const ReplicaTable::Row& row, const std::vector<int>& here);

struct ShownReplicas {
  ReplicaTable table;
  std::string before;  // of the check before, which a finding comes after: "in check #3 all were equal"
  std::map<int, std::vector<Write>> writes;  // by rank: what it did to them since its check before; when explained
};

using ReplicaRound = Round<ShownReplicas>;

inline constexpr const char* kReplicas = "replicas";

// Nothing where all that came have the same.
std::optional<StateFinding> evaluate(const ReplicaRound& round);

}  // namespace rehearse::checks
