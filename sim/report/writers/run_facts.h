// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/job/report.h>

#include "report/writers/json.h"

namespace rehearse::sim {

// The facts by which a file of a run says to which run it belongs: program, seed, verdict and identity.
Json run_facts(const Report& report);

}  // namespace rehearse::sim
