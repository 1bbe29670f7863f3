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

// Every choice of a run in order, and the run's identity: a hash over the choices, their answers, and the virtual time
// and fiber of each step. Two runs of one binary with equal hashes took the same path.
class DecisionLog {
 public:
  // Records nothing from now on. For real runs, which depend on the machine too and cannot be replayed.
  void keep_nothing() noexcept { keeps_ = false; }

  void record(ChoiceKind kind, std::span<const std::uint32_t> candidates, std::uint32_t answer);

  // A step of the schedule: `fiber` runs next, at `now`. Goes into the hash, but is not stored.
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

// Asks the oracle and records the answer. Only this class, and an oracle that wraps another one, call Oracle::choose().
class Decisions {
 public:
  // Owns neither; both must outlive this object.
  Decisions(Oracle& oracle, DecisionLog& log) : oracle_(oracle), log_(log) {}

  // See Oracle::begin().
  bool begin(const FiberFacts& facts) { return oracle_.begin(facts); }

  // Returns an index into `candidates`. If there is a single candidate, returns 0 without asking the oracle. `weights`:
  // see Oracle::choose(); only the answer is recorded, not the weights. Throws what the oracle throws, and
  // std::logic_error if there is no candidate, if the weights break the oracle's rules, or if the oracle's answer is
  // out of range. After the oracle has failed once, every later choice throws the same exception.
  std::uint32_t choose(ChoiceKind kind, std::span<const std::uint32_t> candidates,
                       std::span<const std::uint32_t> weights = {});

  // The exception with which the oracle failed; null if it has not.
  const std::exception_ptr& failure() const noexcept { return failure_; }

  DecisionLog& log() noexcept { return log_; }

 private:
  std::uint32_t ask(ChoiceKind kind, std::span<const std::uint32_t> candidates, std::span<const std::uint32_t> weights);

  Oracle& oracle_;
  DecisionLog& log_;
  std::exception_ptr failure_;
};

}  // namespace rehearse
