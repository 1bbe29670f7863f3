// SPDX-License-Identifier: BSD-3-Clause
#include <filesystem>
#include <ostream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <rehearse/sim/report_writers.h>
#include <rehearse_internal/sim/input_file.h>
#include <rehearse_internal/sim/run_log.h>

#include "cli/commands.h"
#include "cli/grammar/usage_error.h"
#include "cli/job.h"
#include "dumps/dump_error.h"
#include "dumps/dump_files.h"
#include "dumps/explain_dumps.h"
#include "record/output_file.h"
#include "report/page/report_page.h"
#include "run/run_page.h"

namespace rehearse::cli {
namespace {

using std::filesystem::path;

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
      arguments.operand, log.program, log.seed, command_word(arguments.self), shell_word(arguments.operand)));
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

// Reads the report that the operands name: a run log, a report.json, or the flight recorder dumps of a job (one
// or more files, or a folder). Throws UsageError, InputError and RunLogError.
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

path page_of(const Arguments& arguments) {
  if (!arguments.page.empty()) return arguments.page;
  const path operand(arguments.operand);
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(operand, ignored))
    throw UsageError(fmt::format("{}: is no file, so the page has no folder; name one with --output=report.html",
                                 arguments.operand));
  return operand.parent_path() / "report.html";
}

// A page must not overwrite its input. A page made from dumps replaces an existing page only if the user names that
// page, because the page of a run holds more.
void require_free(const path& page, const Arguments& arguments, const Report& report) {
  std::error_code ignored;
  for (const auto& operand : arguments.operands) {
    if (std::filesystem::equivalent(page, operand, ignored))
      throw UsageError(fmt::format("--output={}: is the input of the page", page.string()));
  }
  if (report.dumps && arguments.page.empty() && std::filesystem::exists(page, ignored))
    throw UsageError(
        fmt::format("{}: exists already; name another file for the page, as in --output=hang.html", page.string()));
}

}  // namespace

int explain(const Arguments& arguments, Console& console) { return console.conclude(read_report(arguments)); }

int html(const Arguments& arguments, Console& console) {
  const auto report = read_report(arguments);
  const auto page = page_of(arguments);
  require_free(page, arguments, report);
  auto run = sim::stored_page_run(report, path(arguments.operand).parent_path());
  const bool misses_timeline = !report.dumps && !run.contains("timeline");
  sim::write_file(page, [&](std::ostream& out) { sim::write_report_page(out, report, std::move(run)); });
  if (misses_timeline)
    console.note("the page has no timeline: there is neither a page nor a trace.json of this run beside the input\n");
  return console.conclude(fmt::format("page: {}\n", page.string()), 0);
}

}  // namespace rehearse::cli
