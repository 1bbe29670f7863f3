// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <rehearse/job/report.h>

#include "report/page/timeline.h"

// Runs made by hand that pages are tested with.
namespace rehearse::test {

struct PageWorld {
  Report report;
  sim::Timeline timeline;
};

// So many ranks make so many calls each: all-reduces of all ranks mostly, sends to the next rank at times, work between
// them. In the end rank 2 returns and the others wait for it.
PageWorld skips_a_call(int ranks, int calls);

// The same with 8 ranks and little of everything that a page can show: faults and a restart, a checker's finding, calls
// of which two ranks disagree, pieces of a compiled function. `folder` has train.txt.
PageWorld shows_everything(const std::string& folder);

}  // namespace rehearse::test
