// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <rehearse/job/report.h>

#include "worker.h"

namespace rehearse::cli {

// The report on a seed whose worker died with `status` (as from waitpid), written beside a log that replays
// the seed; and what went wrong while they were written. `printed` is what the worker had printed.
std::pair<Report, std::string> crash_report(const SweepSetup& setup, std::uint64_t seed, int status,
                                            int printed);

}  // namespace rehearse::cli
