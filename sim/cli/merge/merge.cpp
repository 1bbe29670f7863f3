// SPDX-License-Identifier: BSD-3-Clause
#include <filesystem>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/job.h"
#include "cli/merge/merge_folder.h"
#include "cli/merge/merge_shards.h"
#include "cli/sweep/shard_file.h"

namespace rehearse::cli {

int merge(const Arguments& arguments, Console& console) {
  const std::filesystem::path folder(arguments.operand);
  if (const auto shards = shard_files_in(folder); !shards.empty()) return merge_shards(shards, arguments, console);
  if (!arguments.junit.empty()) {
    throw UsageError(fmt::format("{}: has no shards of a sweep, and --junit is for those", arguments.operand));
  }
  auto report = merged_report_of(folder, std::nullopt);
  report.replay = fmt::format("{} merge {}", shell_word(arguments.self), shell_word(arguments.operand));
  sim::OutputOptions output;
  output.want_what_modes_share();
  const int code = exit_code(report.verdict);
  return leave_merged(std::move(report), folder, output, code, console);
}

}  // namespace rehearse::cli
