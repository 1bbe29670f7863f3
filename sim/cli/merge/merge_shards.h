// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <vector>

#include "cli/grammar/arguments.h"
#include "cli/terminal/console.h"

namespace rehearse::cli {

// Does `merge` for the shards of a sweep: prints what all of them found. Returns the exit code. Throws what
// join_shards() throws, and UsageError if the JUnit file cannot be written.
int merge_shards(const std::vector<std::filesystem::path>& files, const Arguments& arguments, Console& console);

}  // namespace rehearse::cli
