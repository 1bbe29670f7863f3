// SPDX-License-Identifier: BSD-3-Clause
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <rehearse/sim/report_writers.h>
#include <rehearse_internal/sim/input_file.h>
#include <rehearse_internal/sim/run_log.h>

#include "cli/commands.h"
#include "cli/grammar/usage_error.h"
#include "cli/job.h"

namespace rehearse::cli {
namespace {

// A report.json is told from a log by its first letter.
bool is_json(std::string_view bytes) { return bytes.starts_with('{'); }

std::size_t bytes_most(std::string_view beginning) {
  return is_json(beginning) ? std::size_t{256} << 20 : sim::run_log_bytes_most(beginning);
}

Report report_in_json(const std::string& bytes, const std::string& file) {
  try {
    return sim::report_from_json(bytes);
  } catch (const sim::ReportFormatError& error) {
    throw UsageError(fmt::format("{}: {}", file, error.what()));
  }
}

Report report_in_log(const std::string& bytes, const Arguments& arguments) {
  auto log = sim::parse_run_log(bytes, arguments.operand);
  if (log.finished) return std::move(log.finished->report);
  throw UsageError(fmt::format(
      "{}: the run of {} with seed {} did not end, so there is no report in its log (a report.json beside it may say "
      "how it was ended); run it again: {} replay {}",
      arguments.operand, log.program, log.seed, shell_word(arguments.self), shell_word(arguments.operand)));
}

}  // namespace

int explain(const Arguments& arguments, Console& console) {
  const auto& file = arguments.operand;
  require_no_folder(file);
  // Once, from its beginning: it may be a pipe.
  const auto bytes = sim::read_input(file, "run log or report", bytes_most);
  if (bytes_most(bytes) == 0)
    throw UsageError(fmt::format("{}: is neither a run log (run.rlog) nor a report (report.json)", file));
  return console.conclude(is_json(bytes) ? report_in_json(bytes, file) : report_in_log(bytes, arguments));
}

}  // namespace rehearse::cli
