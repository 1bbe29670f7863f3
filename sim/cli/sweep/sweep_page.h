// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>

#include "cli/sweep/summary.h"
#include "cli/terminal/console.h"

namespace rehearse::cli {

// The path `folder`/sweep.html. The page shows each bug with its seeds and its frequency, and links to the pages of the
// seeds.
std::filesystem::path sweep_page(const std::filesystem::path& folder);

// If a seed failed, writes the page and says where it is; otherwise removes an old one. Returns false, and prints why,
// if the page cannot be written.
bool leave_sweep_page(const std::filesystem::path& folder, const SweepOutcome& outcome, Console& console);

}  // namespace rehearse::cli
