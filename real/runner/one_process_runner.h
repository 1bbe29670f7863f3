// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/job/runner.h>

namespace rehearse::real {

// All ranks in this process, as fibers of the calling thread, rank r on GPU r; collectives on GPUs by NCCL, those of
// CPU tensors as the simulation's. Over the machine's time, first come first served.
//
// Blocks until all ranks have ended. Throws RunnerUnavailable where there are fewer GPUs than ranks, or no NCCL.
class OneProcessRunner final : public Runner {
 public:
  std::unique_ptr<RunRecord> run(const RunRequest& request, const JobBody& body, const ShowProgress& show) override;
};

}  // namespace rehearse::real
