// SPDX-License-Identifier: BSD-3-Clause
#include "cli/read_report.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <rehearse/sim/report_writers.h>
#include <rehearse_internal/sim/input_file.h>
#include <rehearse_internal/sim/run_log.h>

#include "cli/grammar/usage_error.h"
#include "cli/job.h"
#include "dumps/dump_error.h"
#include "dumps/dump_files.h"
#include "dumps/explain_dumps.h"

namespace rehearse::cli {
namespace {

// The first character distinguishes a report.json from a log.
bool is_json(std::string_view bytes) { return bytes.starts_with('{'); }

// The largest size of a report, dump or log that has this beginning; 0: it is none of these.
std::size_t bytes_most(std::string_view beginning) {
  const bool may_be_any = is_json(beginning) || sim::may_be_dump(beginning);
  return may_be_any ? std::size_t{256} << 20 : sim::run_log_bytes_most(beginning);
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

// True for several operands and for a folder. Throws UsageError for the folder of a run.
bool are_dumps(const Arguments& arguments) {
  if (arguments.operands.size() > 1) return true;
  require_no_folder(arguments.operand);
  std::error_code ignored;
  return std::filesystem::is_directory(arguments.operand, ignored);
}

Report report_of_dumps(const Arguments& arguments) {
  try {
    return sim::explain_dumps(arguments.operands);
  } catch (const sim::DumpError& error) {
    throw UsageError(error.what());
  }
}

}  // namespace

Report read_report(const Arguments& arguments) {
  if (are_dumps(arguments)) return report_of_dumps(arguments);
  const auto& file = arguments.operand;
  // Read the file once, from its beginning, because it may be a pipe.
  const auto bytes = sim::read_input(file, "run log, report or dump", bytes_most);
  if (bytes_most(bytes) == 0) {
    throw UsageError(fmt::format(
        "{}: is neither a run log (run.rlog), nor a report (report.json), nor a flight recorder's dump", file));
  }
  if (sim::is_dump(bytes)) return report_of_dumps(arguments);
  return is_json(bytes) ? report_in_json(bytes, file) : report_in_log(bytes, arguments);
}

}  // namespace rehearse::cli
