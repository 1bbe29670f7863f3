// SPDX-License-Identifier: BSD-3-Clause
#include <filesystem>
#include <vector>

#include <fmt/format.h>
#include <rehearse_internal/formatting/rank_list.h>

#include "cli/commands.h"
#include "cli/job.h"
#include "cli/merge/merge_folder.h"
#include "cli/output_folder.h"
#include "cli/sweep/junit.h"
#include "cli/sweep/shard_file.h"
#include "cli/sweep/sweep_page.h"
#include "cli/terminal/exit_codes.h"

namespace rehearse::cli {
namespace {

// Does `merge` for the shards of a sweep: prints what all of them found. Returns the exit code. Throws what
// join_shards() throws, and UsageError if the JUnit file cannot be written.
int merge_shards(const std::vector<std::filesystem::path>& files, const Arguments& arguments, Console& console) {
  require_junit(arguments.junit);
  const auto joined = join_shards(files);
  if (!joined.missing.empty()) {
    Console::error(fmt::format("{}: {} of {} shards {} missing: {}\n", arguments.operand, joined.missing.size(),
                               joined.count, joined.missing.size() == 1 ? "is" : "are", rank_numbers(joined.missing)));
  }
  const auto& outcome = joined.outcome;
  const auto text = arguments.json ? to_json(outcome) : to_text(outcome, console.color());
  const int code = console.conclude(text, exit_code(outcome));
  const bool all_left = leave_junit(arguments.junit, outcome.program, outcome.results) &&
                        leave_sweep_page(arguments.operand, outcome, console);
  return all_left || code != 0 ? code : kExitOutput;
}

}  // namespace

int merge(const Arguments& arguments, Console& console) {
  const std::filesystem::path folder(arguments.operand);
  if (const auto shards = shard_files_in(folder); !shards.empty()) return merge_shards(shards, arguments, console);
  if (!arguments.junit.empty()) {
    throw UsageError(fmt::format("{}: has no shards of a sweep, and --junit is for those", arguments.operand));
  }
  if (FolderLock::is_held(folder))
    throw UsageError(
        fmt::format("{}: its run is under way, and merges its ranks itself at its end", arguments.operand));
  auto report = merged_report_of(folder, std::nullopt);
  report.replay = fmt::format("{} merge {}", command_word(arguments.self), shell_word(arguments.operand));
  sim::OutputOptions output;
  output.want_what_modes_share();
  const int code = exit_code(report.verdict);
  return leave_merged(std::move(report), folder, output, code, console);
}

}  // namespace rehearse::cli
