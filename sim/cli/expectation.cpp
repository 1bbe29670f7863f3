// SPDX-License-Identifier: BSD-3-Clause
#include "cli/expectation.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/terminal/exit_codes.h"

namespace rehearse::cli {
namespace {

bool all_fired(const Report& report) {
  return std::ranges::all_of(report.faults,
                             [](const FaultLine& fault) { return fault.why_not.empty() || fault.optional; });
}

bool is_test(const sim::Scenario& scenario) { return scenario.expect != Verdict::ok; }

}  // namespace

bool came_as_expected(const sim::Scenario& scenario, const Report& report) {
  const bool of_faults = scenario.expect == Verdict::ok || scenario.expect == Verdict::fault_not_fired;
  return report.verdict == scenario.expect && (of_faults || all_fired(report));
}

std::string expectation(const sim::Scenario& scenario, const Report& report) {
  return fmt::format("expected {}: the run ended as {}{}", to_string(scenario.expect), to_string(report.verdict),
                     all_fired(report) ? "" : ", and a fault did not fire");
}

int exit_code_of(const sim::Scenario& scenario, const Report& report) {
  const int code = exit_code(report.verdict);
  if (!is_test(scenario)) return code;
  if (came_as_expected(scenario, report)) return 0;
  return code == 0 || report.verdict == scenario.expect ? kExitDisagree : code;
}

void tell_unexpected(const sim::Scenario& scenario, const Report& report) {
  if (is_test(scenario) && !came_as_expected(scenario, report)) Console::error(expectation(scenario, report) + "\n");
}

int conclude(const sim::Scenario& scenario, const Report& report, Console& console, const std::string& problem) {
  const int code = console.conclude(report, exit_code_of(scenario, report));
  tell_unexpected(scenario, report);
  return Console::code_after(problem, code);
}

}  // namespace rehearse::cli
