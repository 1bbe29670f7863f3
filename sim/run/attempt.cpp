// SPDX-License-Identifier: BSD-3-Clause
#include "run/attempt.h"

#include <utility>

#include <fmt/format.h>

#include <rehearse/sim/schedule.h>

namespace rehearse::sim {

Attempt run_once(const AttemptOptions& options, const World::Body& body, Oracle* answers) {
  Attempt attempt;
  auto own = std::make_unique<World>(options.world);
  World& world = *own;
  attempt.world = std::move(own);
  if (options.show) world.on_progress(options.show);
  if (options.say_repeat) world.on_repeat(options.say_repeat);
  const auto& asked = options.world;
  const auto seeded = answers == nullptr ? make_oracle(asked.schedule, asked.seed, asked.pct) : nullptr;
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
  if (!difference) return true;
  report.verdict = Verdict::nondeterminism;
  report.headline = fmt::format(
      "two runs of seed {} differ, so the program uses something outside of the seed (a clock, an address, a thread): "
      "{}",
      report.seed, difference->text);
  return false;
}

}  // namespace rehearse::sim
