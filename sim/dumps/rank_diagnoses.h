// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <rehearse/job/report.h>

#include "dumps/dumped_job.h"
#include "dumps/job_diagnosis.h"
#include "dumps/stacks.h"

namespace rehearse::sim {

// One line for each rank: the call in which it waits or, if it waits in none, the place of its last call.
std::vector<RankLine> rank_lines_of(const DumpedJob& job, const JobDiagnosis& diagnosis, const Stacks& stacks);

// The stacks where ranks are: at the call that differs, at the call in which they wait, or otherwise at their last
// call. Stacks of `culprits` come first.
std::vector<DumpFacts::Stack> stacks_of(const DumpedJob& job, const JobDiagnosis& diagnosis, const Stacks& stacks,
                                        const std::vector<int>& culprits);

// Lists what the dumps do not tell, and what is odd about them.
std::vector<std::string> remarks_of_dumps(const DumpedJob& job, const JobDiagnosis& diagnosis);

}  // namespace rehearse::sim
