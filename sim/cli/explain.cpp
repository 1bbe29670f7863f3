// SPDX-License-Identifier: BSD-3-Clause
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <rehearse/sim/report_writers.h>
#include <rehearse/sim/run_log.h>

#include "commands.h"
#include "job.h"

namespace rehearse::cli {
namespace {

// A report.json is told from a log by its first letter.
bool is_json(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return in.peek() == '{';
}

Report report_in_json(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  try {
    return sim::report_from_json(std::string(std::istreambuf_iterator<char>(in), {}));
  } catch (const sim::ReportFormatError& error) {
    throw UsageError(fmt::format("{}: {}", file, error.what()));
  }
}

Report report_in_log(const Arguments& arguments) {
  auto log = sim::read_run_log(arguments.operand);
  if (log.finished) return std::move(log.finished->report);
  throw UsageError(fmt::format(
      "{}: the run of {} with seed {} did not end, so there is no report; run it again: {} replay {}",
      arguments.operand, log.program, log.seed, shell_word(arguments.self), shell_word(arguments.operand)));
}

}  // namespace

int explain(const Arguments& arguments, Console& console) {
  const auto report =
      is_json(arguments.operand) ? report_in_json(arguments.operand) : report_in_log(arguments);
  return console.conclude(report);
}

}  // namespace rehearse::cli
