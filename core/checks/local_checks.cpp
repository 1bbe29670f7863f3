// SPDX-License-Identifier: BSD-3-Clause
#include "checks/local_checks.h"

#include <cstdint>
#include <numeric>
#include <stdexcept>

#include <rehearse_internal/checks/unwatched.h>
#include <rehearse_internal/exec/fiber_local.h>

#include "checks/finite.h"
#include "checks/gradients.h"

namespace rehearse::checks {
namespace {

struct Counts {
  std::uint64_t gradients = 0;
  std::uint64_t finite = 0;
};

const exec::FiberLocal<Counts> g_counts;

}  // namespace

std::optional<StateFinding> gradients_here(int rank, int ranks, const ModelState& state, const at::Generator& generator,
                                           const std::function<at::Tensor()>& loss, const CheckOptions& options) {
  if (state.lend_whole()) {
    throw std::invalid_argument(
        "RankContext::check_gradients() was given a FullyShardedDataParallel in a real run, in which no rank has the "
        "whole model. Make the check in a simulation");
  }
  GradientsRound round;
  round.name = options.name.empty() ? kGradients : options.name;
  round.number = ++g_counts->gradients;
  round.of.resize(options.ranks.empty() ? static_cast<std::size_t>(ranks) : options.ranks.size());
  std::iota(round.of.begin(), round.of.end(), 0);
  round.here = {rank};
  {
    const Unwatched own;
    round.shown.table.add(rank, gradients_of(state));
  }
  const auto reference = reference_gradients(state, generator, loss);
  const Unwatched own;
  return evaluate(round, gradients_of(state), reference, options.tolerance, nullptr);
}

std::optional<StateFinding> finite_here(int rank, const ModelState& state, const CheckOptions& options) {
  const Unwatched own;
  auto found =
      first_non_finite(state, options.buffers, rank, options.name.empty() ? kFinite : options.name, ++g_counts->finite);
  if (!found) return std::nullopt;
  return std::move(found->finding);
}

std::string text_of(const StateFinding& finding) {
  std::string text = finding.headline;
  for (const auto& line : finding.details) text += "\n" + line;
  return text;
}

}  // namespace rehearse::checks
