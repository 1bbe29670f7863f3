// SPDX-License-Identifier: BSD-3-Clause
#include "cli/validate/comparison.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <rehearse_internal/formatting/rank_list.h>

namespace rehearse::cli {
namespace {

// A simulation ends with the first exception, but processes each end with their own. So the culprits of one mode may
// include those of the other.
bool same_culprits(const ModeRun& one, const ModeRun& other) {
  if (one.culprits == other.culprits || one.names_nobody() || other.names_nobody()) return true;
  constexpr Verdict kOfExceptions[] = {Verdict::rank_failed, Verdict::check_failed, Verdict::crashed};
  const auto verdict = one.report.verdict;
  if (std::find(std::begin(kOfExceptions), std::end(kOfExceptions), verdict) == std::end(kOfExceptions)) return false;
  const auto& [few, many] =
      std::minmax(one.culprits, other.culprits, [](const auto& a, const auto& b) { return a.size() < b.size(); });
  return !few.empty() && std::includes(many.begin(), many.end(), few.begin(), few.end());
}

}  // namespace

bool ModeRun::names_nobody() const { return report.verdict == Verdict::crashed && culprits.empty(); }

std::string culprits_text(const ModeRun& run) {
  if (run.names_nobody()) return "not known";
  return run.culprits.empty() ? "nobody" : describe_ranks(run.culprits);
}

Comparison compare(const ModeRun& one, const ModeRun& other, std::optional<double> tolerance) {
  Comparison result;
  if (one.report.verdict != other.report.verdict) {
    result.outcome.push_back(fmt::format("the verdict is {} by {}, {} by {}", to_string(one.report.verdict), one.name,
                                         to_string(other.report.verdict), other.name));
  } else if (!same_culprits(one, other)) {
    result.outcome.push_back(fmt::format("the culprit is {} by {}, {} by {}", culprits_text(one), one.name,
                                         culprits_text(other), other.name));
  }
  const bool to_the_end = one.report.verdict == Verdict::ok && other.report.verdict == Verdict::ok;
  result.calls = compare_calls(one, other, to_the_end);
  result.results = compare_results(one, other, tolerance, one.report.ranks, to_the_end);
  return result;
}

}  // namespace rehearse::cli
