// SPDX-License-Identifier: BSD-3-Clause
#include "run/log_replay.h"

#include <fmt/format.h>

#include <rehearse_internal/sim/oracles.h>

namespace rehearse::sim {
namespace {

constexpr std::string_view kOtherWay = "the replay took another way than the log: ";

}  // namespace

std::string replay_log(const RunLog& log, const std::function<const Report&(Oracle& answers)>& run) {
  const auto& finished = *log.finished;
  ReplayOracle oracle(finished.decisions, PastEnd::stop);
  try {
    const Report& report = run(oracle);
    if (report.verdict == Verdict::interrupted) return "";
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
