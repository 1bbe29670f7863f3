// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/job/runner.h>

namespace rehearse::real {

// Runs all ranks in this process, as fibers of the calling thread, rank r on GPU r. NCCL carries collectives on GPUs;
// collectives of CPU tensors work as in the simulation. Time is the machine's, and ranks run in order of arrival.
//
// Blocks until all ranks have ended. Throws RunnerUnavailable if something is missing, such as NCCL or a GPU for each
// rank.
class OneProcessRunner final : public Runner {
 public:
  std::unique_ptr<RunRecord> run(const RunRequest& request, const JobBody& body, const ShowProgress& show) override;
};

}  // namespace rehearse::real
