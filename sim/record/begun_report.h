// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <rehearse/job/report.h>
#include <rehearse/sim/world_options.h>

namespace rehearse::sim {

// What every report says of its run, whatever became of it: program, ranks, seed, schedule, version.
Report begun_report(const WorldOptions& options, std::string program = "");

}  // namespace rehearse::sim
