// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <rehearse/job/report.h>

#include "cli/death/crash_record.h"
#include "cli/sweep/worker.h"

namespace rehearse::cli {

// Writes the report on a seed whose worker died with `status` (as waitpid() gives it) or, for an empty status, was
// killed because it exceeded its time. Also writes a log that replays the seed. Returns the report, and what went wrong
// while writing. `crash` is the worker's crash record, `printed` holds what it printed.
std::pair<Report, std::string> crash_report(const SweepSetup& setup, std::uint64_t seed, std::optional<int> status,
                                            const CrashRecord& crash, int printed);

}  // namespace rehearse::cli
