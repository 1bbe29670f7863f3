// SPDX-License-Identifier: BSD-3-Clause
#include "begun_report.h"

#include <utility>

namespace rehearse::sim {

Report begun_report(const WorldOptions& options, std::string program) {
  Report report;
  report.program = std::move(program);
  report.ranks = options.ranks;
  report.seed = options.seed;
  report.schedule = schedule_text(options);
  report.version = REHEARSE_VERSION;
  return report;
}

}  // namespace rehearse::sim
