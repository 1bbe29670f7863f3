// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string_view>

namespace rehearse {

// This process as one of a job's, started by torchrun, mpirun, Slurm's srun, or `run --real` itself: a rank each.
struct LaunchedProcess {
  int rank = 0;
  int size = 1;
  int local_rank = 0;              // among those of this host
  int restart_count = 0;           // how often torchrun has started it again: TORCHELASTIC_RESTART_COUNT
  std::string_view rank_variable;  // of the environment, which says so: "RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"
};

// Read from the environment: RANK, WORLD_SIZE, LOCAL_RANK; OMPI_COMM_WORLD_RANK, ..._SIZE, ..._LOCAL_RANK; inside of a
// step SLURM_PROCID, SLURM_NTASKS, SLURM_LOCALID. The first of these kinds that says a rank counts. Nothing: this
// process was not started as one of several. Throws RunnerUnavailable where a variable is missing beside its rank, or
// says no number that fits.
std::optional<LaunchedProcess> launched_process();

}  // namespace rehearse
