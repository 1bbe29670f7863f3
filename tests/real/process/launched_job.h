// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <rehearse/job/rank_context.h>
#include <rehearse/job/report.h>

namespace rehearse::test {

using Tensors = std::vector<at::Tensor>;

// A job: the body that each rank runs, and its name. The body adds its results to `results`.
struct Job {
  std::string name;
  std::function<void(RankContext& context, Tensors& results)> body;
};
std::vector<Job> collective_jobs();
std::vector<Job> faulty_jobs();
const Job& job_named(const std::string& name);

struct RankRun {
  int exit_code = -1;            // of its process; negative: the signal that killed it
  std::optional<Report> report;  // no value: the process wrote none
  std::vector<std::string> events;
  std::map<std::string, Tensors> results;  // of each job
  std::string output;
};

// Names of jobs that one world runs one after another, because starting and connecting processes takes longer than a
// job.
using JobNames = std::vector<std::string>;

// The process that serves the job's store: rank 0, or the process that starts the job, as with torchrun's agent.
enum class Store { of_rank_0, of_launcher };

// Starts this executable once for each rank, with a launcher's environment and further "NAME=value" settings. Blocks
// until all have ended.
std::vector<RankRun> run_processes(const JobNames& jobs, int ranks, const std::vector<std::string>& environment = {},
                                   Store store = Store::of_rank_0);

std::vector<RankRun> simulate(const JobNames& jobs, int ranks);

// Call this function in main(). In a process that run_processes() started, the function does the work and returns the
// exit code. In other processes, it returns nothing.
std::optional<int> run_as_rank(int argc, char** argv);

}  // namespace rehearse::test
