// SPDX-License-Identifier: BSD-3-Clause
#include "run/attempt.h"

#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <rehearse/sim/schedule.h>
#include <rehearse_internal/exec/interrupt.h>
#include <rehearse_internal/sim/oracles.h>

namespace rehearse::sim {
namespace {

constexpr std::string_view kOtherWay = "the replay differs from the log: ";

// The moment at which the logged run was interrupted. Empty if the run was not interrupted. Also empty if only a second
// run, made for comparison, was: the log has the decisions of the first run.
exec::Interruption interruption_of(const Report& report) {
  const bool itself = report.verdict == Verdict::interrupted && report.headline.find(kInSecondRun) == std::string::npos;
  return itself ? exec::Interruption{report.switches, report.end_time} : exec::Interruption{};
}

bool are_equal(const at::Tensor& one, const at::Tensor& other) {
  const auto a = one.contiguous(), b = other.contiguous();
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() &&
         (a.nbytes() == 0 || std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0);
}

// Both runs took the same way, so ranks reported their results in the same order. Empty: the results are equal.
std::string difference_of(const std::vector<RankResult>& first, const std::vector<RankResult>& second) {
  for (std::size_t i = 0; i < first.size() && i < second.size(); ++i) {
    const auto& [rank, name, value] = first[i];
    if (rank == second[i].rank && name == second[i].name && are_equal(value, second[i].value)) continue;
    return fmt::format("all decisions, steps and calls are equal, but rank {}'s result \"{}\" is not", rank, name);
  }
  return first.size() == second.size() ? ""
                                       : "all decisions, steps and calls are equal, but the number of results is not";
}

}  // namespace

Attempt run_once(const AttemptOptions& options, const World::Body& body, Oracle* answers) {
  Attempt attempt;
  auto own = std::make_unique<World>(options.world);
  World& world = *own;
  attempt.world = std::move(own);
  if (options.show) world.on_progress(options.show);
  if (options.say_repeat) world.on_repeat(options.say_repeat);
  const auto& asked = options.world;
  const auto seeded = answers == nullptr ? make_oracle(asked) : nullptr;
  WitnessOracle witness(answers == nullptr ? *seeded : *answers);
  world.use_oracle(witness);
  attempt.report = world.run(body);
  attempt.report.program = options.program;
  attempt.path = witness.path(world.decisions(), world.events().hash());
  if (options.keep_calls) attempt.path.calls = calls_of(world.events());
  return attempt;
}

bool took_same_way(Attempt& first, const Attempt& second) {
  Report& report = first.report;
  if (second.report.verdict == Verdict::interrupted) {
    report.verdict = Verdict::interrupted;
    report.headline = std::string(kInSecondRun) + second.report.headline;
    return false;
  }
  const auto difference = first_difference(first.path, second.path);
  const auto text = difference ? difference->text : difference_of(first.world->results(), second.world->results());
  if (text.empty()) return true;
  report.verdict = Verdict::nondeterminism;
  report.headline = fmt::format(
      "two runs of seed {} differ, so the program uses something outside of the seed (a clock, an address, a thread): "
      "{}",
      report.seed, text);
  return false;
}

bool ended_as_log(const RunLog& log, const Report& report) {
  if (report.verdict != Verdict::interrupted) return true;
  const auto end = interruption_of(log.finished->report);
  return end.before_switch > 0 && report.switches == end.before_switch && report.end_time == end.at;
}

std::string replay_log(const RunLog& log, const std::function<const Report&(Oracle& answers)>& run) {
  const auto& finished = *log.finished;
  ReplayOracle oracle(finished.decisions, PastEnd::stop);
  try {
    const exec::InterruptedAgain end_of_log(interruption_of(finished.report));
    const Report& report = run(oracle);
    if (!ended_as_log(log, report)) return "";
    oracle.require_used_up();
    if (report.identity == finished.report.identity) return "";
    return fmt::format(
        "{}the same {} decisions, but other steps, operations or times in between (identity {:016x}, the log's is "
        "{:016x})",
        kOtherWay, finished.decisions.size(), report.identity, finished.report.identity);
  } catch (const ReplayError& error) {
    return fmt::format("{}{}", kOtherWay, error.what());
  }
}

}  // namespace rehearse::sim
