// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <rehearse/job/report.h>

#include "report/page/timeline.h"

// Hand-made runs for tests of pages.
namespace rehearse::test {

struct PageWorld {
  Report report;
  sim::Timeline timeline;
};

// `ranks` ranks make `calls` calls each: mostly all-reduces and broadcasts of all ranks, sometimes messages between
// neighbours, with work in between. In the end rank 2 returns without its last call, and the others wait for it.
PageWorld skips_a_call(int ranks, int calls);

// The same run with 8 ranks, and with a few examples of everything that a page can show: faults and a restart, a
// finding, calls on which ranks disagree, pieces of a compiled function. `folder` must contain train.txt.
PageWorld shows_everything(const std::string& folder);

}  // namespace rehearse::test
