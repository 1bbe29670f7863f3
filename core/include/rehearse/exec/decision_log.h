// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <exception>
#include <span>

#include <rehearse/exec/decision_list.h>
#include <rehearse/exec/oracle.h>
#include <rehearse/exec/time.h>
#include <rehearse/hash/word_hash.h>

namespace rehearse {

// Every choice of a run in order, and the run's identity: a hash over the choices, what they chose, and the virtual
// time and fiber of each step. Two runs of one binary with the same hash took the same way.
class DecisionLog {
 public:
  // From here on nothing is written down: where the machine decides as well, no run is taken again.
  void keep_nothing() noexcept { keeps_ = false; }

  void record(ChoiceKind kind, std::span<const std::uint32_t> candidates, std::uint32_t answer);

  // A step of the schedule: `fiber` runs next, at `now`. Mixed into the hash, not stored.
  void note_step(std::uint32_t fiber, VirtualTime now) noexcept {
    if (!keeps_) return;
    hash_.add((static_cast<std::uint64_t>(fiber) << 32) ^ static_cast<std::uint64_t>(now.time_since_epoch().count()));
    ++steps_;
  }

  const DecisionList& decisions() const noexcept { return decisions_; }
  std::uint64_t hash() const noexcept { return hash_.value(); }
  std::uint64_t steps() const noexcept { return steps_; }

 private:
  DecisionList decisions_;
  WordHash hash_{0x52454845'41525345ull};
  std::uint64_t steps_ = 0;
  bool keeps_ = true;
};

// Asks the oracle and writes the answer down; nothing else calls Oracle::choose().
class Decisions {
 public:
  // Neither is owned; both outlive this object.
  Decisions(Oracle& oracle, DecisionLog& log) : oracle_(oracle), log_(log) {}

  // Returns an index into `candidates`; with a single candidate it is 0 and nobody is asked. `weights`: see
  // Oracle::choose(); they are not written down, for the answer is.
  // Throws what the oracle throws, and std::logic_error when there is no candidate, the weights are not as Oracle says,
  // or the oracle answers out of range. Once the oracle has failed nobody asks it again: every later choice throws the
  // same.
  std::uint32_t choose(ChoiceKind kind, std::span<const std::uint32_t> candidates,
                       std::span<const std::uint32_t> weights = {});

  // What the oracle failed with; null: it has not.
  const std::exception_ptr& failure() const noexcept { return failure_; }

  DecisionLog& log() noexcept { return log_; }

 private:
  std::uint32_t ask(ChoiceKind kind, std::span<const std::uint32_t> candidates, std::span<const std::uint32_t> weights);

  Oracle& oracle_;
  DecisionLog& log_;
  std::exception_ptr failure_;
};

}  // namespace rehearse
