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

// What each rank of a job does; what it has come to goes into `results`.
struct Job {
  std::string name;
  std::function<void(RankContext& context, Tensors& results)> body;
};
std::vector<Job> collective_jobs();
std::vector<Job> faulty_jobs();
const Job& job_named(const std::string& name);

// One rank's end of a run.
struct RankRun {
  int exit_code = -1;            // of its process; negative: the signal that killed it
  std::optional<Report> report;  // nothing: it wrote none
  std::vector<std::string> events;
  std::map<std::string, Tensors> results;  // of each job
  std::string output;
};

// Jobs, by name, that a world runs one after another: to start processes and to connect them takes longer than a job.
using JobNames = std::vector<std::string>;

// Who serves the store of a job: rank 0, or, as torchrun's agent does, the process that starts it.
enum class Store { of_rank_0, of_launcher };

// Starts this executable once for each rank, with the environment of a launcher and "NAME=value" besides. Blocks until
// all have ended.
std::vector<RankRun> run_processes(const JobNames& jobs, int ranks, const std::vector<std::string>& environment = {},
                                   Store store = Store::of_rank_0);

// The same jobs, simulated.
std::vector<RankRun> simulate(const JobNames& jobs, int ranks);

// In main(): the work of a process that run_processes() has started, and its exit code; nothing in others.
std::optional<int> run_as_rank(int argc, char** argv);

}  // namespace rehearse::test
