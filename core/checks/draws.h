// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <optional>
#include <vector>

#include <ATen/core/Generator.h>
#include <ATen/core/MT19937RNGEngine.h>

#include <rehearse/checks/check_options.h>
#include <rehearse/job/state_finding.h>

#include "checks/rounds.h"
#include "checks/watch/draw_log.h"

namespace rehearse::checks {

struct GeneratorState {
  at::mt19937 engine;
  bool keeps_a_normal = false;  // the second number of a pair is stored for the next draw

  static GeneratorState of(const at::Generator& generator);  // for a CPU generator
  bool operator==(const GeneratorState& other) const;
  std::uint64_t seed() const noexcept { return engine.seed(); }
};

struct ShownDraws {
  Draws wanted = Draws::same;
  std::map<int, GeneratorState> states;  // by rank
  // By rank: its draws since its previous check. Only in runs that explain a finding.
  std::map<int, std::vector<Drawn>> draws;
};

using DrawsRound = Round<ShownDraws>;

inline constexpr const char* kDraws = "draws";

// Returns nullopt if the generators relate as `round.shown.wanted` says.
std::optional<StateFinding> evaluate(const DrawsRound& round);

// How many numbers (of 32 bits) `behind` must draw to reach the state of `ahead`. nullopt if it takes more than a
// million numbers, if no number of draws leads there, or if the two engines are in the same state.
std::optional<std::uint64_t> draws_between(const GeneratorState& behind, const GeneratorState& ahead);

}  // namespace rehearse::checks
