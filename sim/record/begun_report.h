// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <rehearse/job/report.h>
#include <rehearse/sim/world_options.h>

namespace rehearse::sim {

// A report with the facts that every report states, whatever became of the run.
Report begun_report(const WorldOptions& options, std::string program = "");

}  // namespace rehearse::sim
