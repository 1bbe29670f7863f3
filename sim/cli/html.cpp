// SPDX-License-Identifier: BSD-3-Clause
#include <filesystem>
#include <ostream>
#include <utility>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/grammar/usage_error.h"
#include "cli/read_report.h"
#include "record/output_file.h"
#include "report/page/report_page.h"
#include "run/run_page.h"

namespace rehearse::cli {
namespace {

using std::filesystem::path;

path page_of(const Arguments& arguments) {
  if (!arguments.output.empty()) return arguments.output;
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
  if (report.dumps && arguments.output.empty() && std::filesystem::exists(page, ignored))
    throw UsageError(
        fmt::format("{}: exists already; name another file for the page, as in --output=hang.html", page.string()));
}

}  // namespace

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
