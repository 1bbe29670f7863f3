// SPDX-License-Identifier: BSD-3-Clause
#include "compile_time.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include <rehearse/job/compile_time_model.h>
#include <rehearse_internal/exec/executor.h>
#include <rehearse_internal/exec/this_rank.h>
#include <rehearse_internal/exec/world_local.h>

namespace rehearse::compiler {
namespace {

constexpr std::uint32_t kJitterSteps = 16;
constexpr double kNanosecondsMax = 0x1p61;  // 73 years

}  // namespace

void pass_compile_time(std::size_t nodes) {
  const auto* const model = exec::WorldLocal<const CompileTimeModel>::find();
  if (model == nullptr || !exec::this_rank::is_fiber()) return;
  double nanoseconds = static_cast<double>(model->per_node.count()) * static_cast<double>(nodes);
  if (nanoseconds == 0) return;
  if (model->jitter > 0) {
    std::array<std::uint32_t, kJitterSteps> steps;
    std::iota(steps.begin(), steps.end(), 0u);
    const auto step = exec::RankExecutor::current()->decisions().choose(ChoiceKind::latency, steps);
    nanoseconds += std::round(nanoseconds * model->jitter * step / (kJitterSteps - 1));
  }
  const VirtualDuration duration(static_cast<std::int64_t>(std::min(nanoseconds, kNanosecondsMax)));
  exec::this_rank::sleep_for(duration, "a compilation");
}

}  // namespace rehearse::compiler
