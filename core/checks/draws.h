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

// Where a rank's default generator stands.
struct GeneratorPlace {
  at::mt19937 engine;
  bool keeps_a_normal = false;  // the second of a pair is there, not yet handed out

  static GeneratorPlace of(const at::Generator& generator);  // a CPU generator
  bool operator==(const GeneratorPlace& other) const;
  std::uint64_t seed() const noexcept { return engine.seed(); }
};

struct ShownDraws {
  Draws wanted = Draws::same;
  std::map<int, GeneratorPlace> places;     // by rank
  std::map<int, std::vector<Drawn>> draws;  // by rank: by what it drew since its check before; when explained
};

using DrawsRound = Round<ShownDraws>;

inline constexpr const char* kDraws = "draws";

// Nothing where it is as it was wanted.
std::optional<StateFinding> evaluate(const DrawsRound& round);

// How many numbers (of 32 bits) `behind` draws until it is where `ahead` is; nothing where that is none of the next
// million.
std::optional<std::uint64_t> draws_between(const GeneratorPlace& behind, const GeneratorPlace& ahead);

}  // namespace rehearse::checks
