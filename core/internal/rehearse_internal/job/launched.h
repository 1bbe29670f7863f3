// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string_view>

namespace rehearse {

// This process as one of a job's processes, each of which is a rank. torchrun, mpirun, Slurm's srun or `run --real`
// starts them.
struct LaunchedProcess {
  int rank = 0;
  int size = 1;
  int local_rank = 0;     // among the job's processes on this host
  int restart_count = 0;  // how many times torchrun has restarted it: TORCHELASTIC_RESTART_COUNT
  // The environment variable with the rank: "RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID".
  std::string_view rank_variable;
};

// Reads the environment: RANK, WORLD_SIZE, LOCAL_RANK; or OMPI_COMM_WORLD_RANK, ..._SIZE, ..._LOCAL_RANK; or, inside a
// step, SLURM_PROCID, SLURM_NTASKS, SLURM_LOCALID. Uses the first of these sets that gives a rank. Returns nullopt if
// none of them does. Throws RunnerUnavailable if the number of ranks is missing, or if a variable of the set, or
// TORCHELASTIC_RESTART_COUNT, has no valid number. The local rank may be missing; then it is 0.
std::optional<LaunchedProcess> launched_process();

}  // namespace rehearse
