// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rehearse/exec/decision_log.h>
#include <rehearse/exec/oracle.h>
#include <rehearse/exec/time.h>

// Checks whether two runs took the same path. Run twice and compare the hashes. If they differ, first_difference()
// names the first place where the runs part.
//
//   sim::RandomOracle oracle(seed);                      // a new one for each run
//   sim::WitnessOracle witness(oracle);
//   world.use_oracle(witness);
//   world.run(body);
//   sim::RunPath path = witness.path(world.decisions(), world.events().hash());
//   path.calls = sim::calls_of(world.events());         // names calls; needs WorldOptions::keep_all_events

namespace rehearse::comm {
class EventLog;
}

namespace rehearse::sim {

// A remark of a failed run begins with this if the run, repeated with the same decisions for its report, went another
// way.
inline constexpr std::string_view kOutsideOfTheSeed =
    "repeated with the same decisions, the run went another way, so the program uses something outside of the seed";

// The communication calls of a run, in order.
struct RunCalls {
  struct Call {
    VirtualTime at{};
    int rank = -1;
    std::uint32_t sequence = 0;
    std::uint32_t what = 0, group = 0;  // indices into `texts`
    std::uint32_t where = 0;            // index into `texts`, of an empty text unless call sites were captured
  };

  std::vector<Call> calls;
  std::vector<std::string> texts;  // "allreduce(sum, float32[3], cpu)", "world"
};

// The calls that the log keeps.
RunCalls calls_of(const comm::EventLog& events);

// The path that one run took: its decisions and, as far as they are known, its states and calls.
struct RunPath {
  // The state of the run just before it took a decision.
  struct State {
    VirtualTime at{};
    std::uint64_t hash = 0;  // DecisionLog::hash() before the decision
    int rank = -1;           // for ChoiceKind::next_fiber: the rank that goes on; -1: unknown
  };

  std::vector<Decision> decisions;
  std::vector<State> states;  // one for each decision; empty: unknown
  std::uint64_t decisions_hash = 0;
  std::uint64_t events_hash = 0;
  RunCalls calls;  // empty: unknown
};

// How many choices of ChoiceKind::next_fiber the run made: PctOptions::steps for runs like this one.
std::uint64_t choices_of_fibers(const RunPath& path);

// The path of a world's last run, without states: enough to name the decision, not the time.
RunPath path_of(const DecisionLog& decisions, std::uint64_t events_hash);

// Lets `answers` make every choice, and records the run's state before each choice.
class WitnessOracle final : public Oracle {
 public:
  // Not owned; must outlive this object.
  explicit WitnessOracle(Oracle& answers) : answers_(answers) {}

  bool begin(const FiberFacts& facts) override { return answers_.begin(facts); }
  // Throws what `answers` throws.
  std::uint32_t choose(ChoiceKind kind, std::span<const std::uint32_t> candidates,
                       std::span<const std::uint32_t> weights = {}) override;

  RunPath path(const DecisionLog& decisions, std::uint64_t events_hash) const;

 private:
  Oracle& answers_;
  std::vector<RunPath::State> states_;
};

// The place where two runs part.
struct RunDifference {
  enum class What {
    decision,  // they made different choices, or got different answers
    schedule,  // equal choices and answers up to here, but other fibers ran, or fibers ran at other times
    events,    // the same schedule, but the operations differ (in size, order or time)
  };
  What what = What::decision;
  // The index of the first decision that differs. For `schedule`: of the first decision after the difference. For
  // `events`: 0.
  std::size_t decision = 0;
  // For example `decision 41 (which rank runs next): the first run chose option 3 of 8, the second run option 5 of 8 at
  // t=1.2 ms`; options count from 0. If the ranks that went on are known, the text names them and their last calls. If
  // both runs' calls are known and differ, the text begins with `the first call that differs is rank 2's allreduce(sum,
  // float32[3], cpu) as #7 of group "world" at t=1.3 ms in the first run, at t=1.4 ms in the second; `, with the places
  // of the calls.
  std::string text;
};

// Returns nothing if the runs took the same path.
std::optional<RunDifference> first_difference(const RunPath& first, const RunPath& second);

}  // namespace rehearse::sim
