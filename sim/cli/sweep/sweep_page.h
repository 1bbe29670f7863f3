// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>

#include "cli/sweep/summary.h"
#include "cli/terminal/console.h"

namespace rehearse::cli {

// `folder`/sweep.html: each bug with its seeds and how often it came, and links to the pages of the seeds.
std::filesystem::path sweep_page(const std::filesystem::path& folder);

// Writes it and says where it is, if a seed failed; otherwise there is none afterwards. Returns false, and says why,
// when it cannot be written.
bool leave_sweep_page(const std::filesystem::path& folder, const SweepOutcome& outcome, Console& console);

}  // namespace rehearse::cli
