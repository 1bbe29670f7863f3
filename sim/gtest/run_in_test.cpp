// SPDX-License-Identifier: BSD-3-Clause
#include <ostream>
#include <utility>

#include <rehearse/rehearse.h>
#include <rehearse/sim/report_writers.h>

#include "rank_assertions.h"

namespace rehearse {

Report run(const WorldOptions& options, World::Body body) {
  RankAssertions assertions(options);
  Report report;
  {
    World world(options);
    const RankAssertions::Capture capture(assertions);
    report = world.run(assertions.wrap(std::move(body)));
  }
  assertions.forward();
  return report;
}

::testing::AssertionResult has_verdict(const Report& report, Verdict wanted) {
  if (report.verdict == wanted) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "expected the verdict " << to_string(wanted) << "; the run said\n"
                                       << sim::to_text(report);
}

void PrintTo(Verdict verdict, std::ostream* out) { *out << to_string(verdict); }

}  // namespace rehearse
