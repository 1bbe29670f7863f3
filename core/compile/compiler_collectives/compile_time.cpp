// SPDX-License-Identifier: BSD-3-Clause
#include "compile_time.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <numeric>

#include <rehearse/job/compile_time_model.h>
#include <rehearse/job/group.h>
#include <rehearse_internal/exec/executor.h>
#include <rehearse_internal/exec/this_rank.h>
#include <rehearse_internal/exec/world_local.h>

namespace rehearse::compiler {
namespace {

constexpr std::uint32_t kJitterSteps = 16;
constexpr double kNanosecondsMax = 0x1p61;  // 73 years

// Null outside of ranks, and in worlds without a model.
const CompileTimeModel* model_of_world() {
  return exec::this_rank::is_fiber() ? exec::WorldLocal<const CompileTimeModel>::find() : nullptr;
}

}  // namespace

void pass_compile_time(std::size_t nodes) {
  const CompileTimeModel* const model = model_of_world();
  if (model == nullptr) return;
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

void note_saved_compile_time(std::size_t nodes) {
  const CompileTimeModel* const model = model_of_world();
  if (model == nullptr) return;
  const double per_node = static_cast<double>(model->per_node.count()) * (1 + model->jitter);
  const VirtualDuration saved(
      static_cast<std::int64_t>(std::min(per_node * static_cast<double>(nodes), kNanosecondsMax)));
  if (saved.count() > 0) world_group().extend_timeout_once(std::chrono::ceil<std::chrono::milliseconds>(saved));
}

}  // namespace rehearse::compiler
