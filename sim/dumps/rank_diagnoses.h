// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <rehearse/job/report.h>

#include "dumps/dumped_job.h"
#include "dumps/job_diagnosis.h"
#include "dumps/stacks.h"

namespace rehearse::sim {

// A line for each rank: the call in which it stands, or what it called last.
std::vector<RankLine> rank_lines_of(const DumpedJob& job, const JobDiagnosis& diagnosis, const Stacks& stacks);

// Where ranks stand: in the call that differs, in the one that waits, or else after their last. Those of `culprits`
// first.
std::vector<DumpFacts::Stack> stacks_of(const DumpedJob& job, const JobDiagnosis& diagnosis, const Stacks& stacks,
                                        const std::vector<int>& culprits);

// What the dumps do not say, and what is odd about them.
std::vector<std::string> remarks_of_dumps(const DumpedJob& job, const JobDiagnosis& diagnosis);

}  // namespace rehearse::sim
