// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <rehearse/exec/call_site.h>

namespace rehearse::elastic {

// The round of a job in which a rank trains: `run` counts the rank's calls of elastic::run() from 1.
struct RoundNumber {
  int run = 0;
  int round = 0;
  friend auto operator<=>(const RoundNumber&, const RoundNumber&) = default;
};

// The checkpoints (elastic::Checkpoint) that the ranks of a world saved and resumed from, in order of time. The code
// that runs the world lends the journal to it (exec::WorldLocal).
class CheckpointJournal {
 public:
  struct TensorHash {
    std::string name;
    std::uint64_t hash = 0;  // of the tensor's bytes
    friend bool operator==(const TensorHash&, const TensorHash&) = default;
  };
  // A rank's call of save(). All ranks of a round may call it; `is_kept` is true for the rank that wrote the
  // checkpoint.
  struct Saved {
    int rank = -1;
    RoundNumber in;
    std::int64_t steps = 0;  // steps done by then
    bool is_kept = false;
    exec::CallSite where;             // empty without details
    std::vector<TensorHash> tensors;  // parameters and buffers; empty without details
  };
  // A rank's call of load() that found a checkpoint.
  struct Restored {
    int rank = -1;
    RoundNumber in;
    RoundNumber saved_in;
    std::int64_t steps = 0;
    exec::CallSite where;  // empty without details
  };

  // `has_details`: for runs that explain a failure, because details need a hash of the model at each save().
  explicit CheckpointJournal(bool has_details = false) noexcept : has_details_(has_details) {}

  bool has_details() const noexcept { return has_details_; }
  void add(Saved saved) { saved_.push_back(std::move(saved)); }
  void add(Restored restored) { restored_.push_back(std::move(restored)); }

  const std::vector<Saved>& saved() const noexcept { return saved_; }
  const std::vector<Restored>& restored() const noexcept { return restored_; }

 private:
  bool has_details_;
  std::vector<Saved> saved_;
  std::vector<Restored> restored_;
};

// The first step after which ranks had a different state than in a reference run.
struct StateDifference {
  RoundNumber in;
  std::int64_t steps = 0;
  std::vector<int> ranks;
  std::vector<std::string> tensors;  // the tensors that differ on one rank: the one of `ranks` that saved first
};

// Compares what each rank saved after each step with what the same rank saved after that step in `reference`. Returns
// nullopt if everything comparable is equal. Both journals must have details.
std::optional<StateDifference> first_difference(const CheckpointJournal& journal, const CheckpointJournal& reference);

}  // namespace rehearse::elastic
