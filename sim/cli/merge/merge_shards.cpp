// SPDX-License-Identifier: BSD-3-Clause
#include "cli/merge/merge_shards.h"

#include <fmt/format.h>

#include <rehearse_internal/formatting/rank_list.h>

#include "cli/sweep/junit.h"
#include "cli/sweep/shard_file.h"
#include "cli/sweep/sweep_page.h"
#include "cli/terminal/exit_codes.h"

namespace rehearse::cli {

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

}  // namespace rehearse::cli
