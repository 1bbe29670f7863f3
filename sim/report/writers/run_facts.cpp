// SPDX-License-Identifier: BSD-3-Clause
#include "report/writers/run_facts.h"

#include <fmt/format.h>

#include <rehearse/sim/report_writers.h>

namespace rehearse::sim {

Json run_facts(const Report& report) {
  return {{"program", report.program},
          {"seed", fmt::format("{:#x}", report.seed)},
          {"verdict", to_string(report.verdict)},
          {"identity", fmt::format("{:#x}", report.identity)}};
}

}  // namespace rehearse::sim
