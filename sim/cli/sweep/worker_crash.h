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

// The report on a seed whose worker died with `status` (as from waitpid), or (nothing) was killed because it
// was past its time; written beside a log that replays the seed. And what went wrong while they were written.
// `crash` is what the worker had noted, `printed` what it had printed.
std::pair<Report, std::string> crash_report(const SweepSetup& setup, std::uint64_t seed, std::optional<int> status,
                                            const CrashRecord& crash, int printed);

}  // namespace rehearse::cli
