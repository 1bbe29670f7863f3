// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <rehearse/exec/decision_log.h>
#include <rehearse/exec/oracle.h>
#include <rehearse/exec/time.h>
#include <rehearse_internal/sim/random_stream.h>

// The oracles that answer a world's choices; World takes any of them. They run on the executor's thread only, hold no
// reference to the world, and serve one run each: a second run needs a new oracle.
namespace rehearse::sim {

// Draws every candidate with the same probability or, if there are weights, in proportion to its weight. Each kind of
// choice draws from its own stream of the seed, so that turning on jitter does not change the order in which ranks run.
// Does not throw.
class RandomOracle final : public Oracle {
 public:
  explicit RandomOracle(std::uint64_t seed) : seed_(seed) {}
  std::uint32_t choose(ChoiceKind kind, std::span<const std::uint32_t> candidates,
                       std::span<const std::uint32_t> weights = {}) override;

 private:
  std::uint64_t seed_;
  std::vector<RandomStream> streams_;  // by kind
};

// Always takes the first candidate: the fiber that has waited longest, no jitter, no fault. Does not throw.
class RoundRobinOracle final : public Oracle {
 public:
  std::uint32_t choose(ChoiceKind, std::span<const std::uint32_t>, std::span<const std::uint32_t> = {}) override {
    return 0;
  }
};

// A run does not fit the log that it replays. If choose() throws it, the run cannot go on, and the executor ends its
// world.
class ReplayError : public std::runtime_error {
 public:
  enum class Problem {
    other_kind,     // the run makes another kind of choice than the log answers here
    other_options,  // the same kind of choice with another number of candidates
    past_end,       // the log is used up, and PastEnd::stop was given
    left_over,      // the run ended before the log did
  };

  ReplayError(Problem problem, std::size_t step, std::optional<Decision> expected, std::optional<Decision> found,
              std::optional<VirtualTime> at);

  Problem problem() const noexcept { return problem_; }
  // The index, from 0, of the first decision at which the run differs from the log.
  std::size_t step() const noexcept { return step_; }
  // expected(): the log's decision at that index; empty if the log has ended. found(): the run's choice there, without
  // an answer; empty if the run has ended.
  const std::optional<Decision>& expected() const noexcept { return expected_; }
  const std::optional<Decision>& found() const noexcept { return found_; }
  // Virtual time of the step; empty outside a run.
  const std::optional<VirtualTime>& at() const noexcept { return at_; }

 private:
  Problem problem_;
  std::size_t step_;
  std::optional<Decision> expected_, found_;
  std::optional<VirtualTime> at_;
};

// Says how a replay answers choices after the end of its log.
enum class PastEnd {
  random,  // draws as RandomOracle; if a RandomOracle with the same seed made the log, this continues its run
  stop,    // throws
};

// Answers from a log. choose() throws ReplayError if the run makes another choice than the log has. With PastEnd::stop,
// choose() also throws at the first choice after the end of the log.
class ReplayOracle final : public Oracle {
 public:
  // `seed` feeds the answers of PastEnd::random.
  ReplayOracle(std::vector<Decision> log, PastEnd past_end, std::uint64_t seed = 0);

  std::uint32_t choose(ChoiceKind kind, std::span<const std::uint32_t> candidates,
                       std::span<const std::uint32_t> weights = {}) override;

  // The number of answered decisions, including those past the end of the log.
  std::size_t answered() const noexcept { return next_; }

  // Call this after a run. Throws ReplayError if the log has answers that the run did not need.
  void require_used_up() const;

 private:
  std::vector<Decision> log_;
  std::size_t next_ = 0;
  PastEnd past_end_;
  RandomOracle beyond_;
};

}  // namespace rehearse::sim
