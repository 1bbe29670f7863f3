// SPDX-License-Identifier: BSD-3-Clause
#include "launched_job.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>
#include <torch/csrc/jit/serialization/pickle.h>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <rehearse/job/verdict.h>
#include <rehearse/sim/report_writers.h>
#include <rehearse/sim/world.h>

#include "own_process.h"

namespace rehearse::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMark = "--rank-of-job";

// A rank's calls, with the properties that must be the same in a real run and in a simulation.
std::vector<std::string> event_lines(const World& world, int rank) {
  std::vector<std::string> lines;
  const auto& events = world.events();
  for (const auto& event : events.of_rank(rank)) {
    const auto& signature = events.signature(event);
    lines.push_back(fmt::format("{} #{} op {} {} timeout={} peer={} tag={} completed={}", events.group(event).name,
                                event.seq_id, event.op_id, signature.fingerprint, signature.timeout.count(), event.peer,
                                event.tag, event.completed()));
  }
  return lines;
}

WorldOptions options_of(int ranks) {
  WorldOptions options;
  options.ranks = ranks;
  options.keep_all_events = true;
  options.explain_failures = false;
  return options;
}

using Results = std::map<std::string, Tensors>;

void run_jobs(const JobNames& jobs, RankContext& context, Results& results) {
  for (const auto& job : jobs) job_named(job).body(context, results[job]);
}

void save(const fs::path& folder, int rank, const World& world, const Report& report, const Results& results) {
  const auto file = [&](const char* kind) { return folder / fmt::format("{}.{}", rank, kind); };
  c10::Dict<std::string, Tensors> of_jobs;
  for (const auto& [job, tensors] : results) of_jobs.insert(job, tensors);
  const auto bytes = torch::jit::pickle_save(c10::IValue(of_jobs));
  std::ofstream(file("results"), std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  std::ofstream events(file("events"));
  for (const auto& line : event_lines(world, rank)) events << line << '\n';
  std::ofstream(file("report")) << sim::to_json(report);
}

RankRun load(const fs::path& folder, int rank, int status) {
  const auto text = [&](const char* kind) { return text_of(folder / fmt::format("{}.{}", rank, kind)); };
  RankRun run;
  run.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  run.output = text("output");
  const auto report = text("report");
  if (report.empty()) return run;
  run.report = sim::report_from_json(report);
  std::istringstream events(text("events"));
  for (std::string line; std::getline(events, line);) run.events.push_back(line);
  const auto results = text("results");
  for (const auto& job : torch::jit::pickle_load({results.begin(), results.end()}).toGenericDict())
    run.results[job.key().toStringRef()] = job.value().toTensorVector();
  return run;
}

// Waits for all children. Lets a stopped child continue two seconds after the others have ended.
std::vector<int> wait_for(const std::vector<pid_t>& children) {
  std::vector<int> statuses(children.size());
  for (std::size_t i = 0; i < children.size(); ++i) waitpid(children[i], &statuses[i], WUNTRACED);
  for (std::size_t i = 0; i < children.size(); ++i) {
    if (!WIFSTOPPED(statuses[i])) continue;
    std::this_thread::sleep_for(std::chrono::seconds(2));
    kill(children[i], SIGCONT);
    waitpid(children[i], &statuses[i], 0);
  }
  return statuses;
}

}  // namespace

const Job& job_named(const std::string& name) {
  static const std::vector<Job> jobs = [] {
    auto all = collective_jobs();
    for (auto& job : faulty_jobs()) all.push_back(std::move(job));
    return all;
  }();
  for (const auto& job : jobs) {
    if (job.name == name) return job;
  }
  throw std::logic_error("there is no job " + name);
}

std::vector<RankRun> run_processes(const JobNames& jobs, int ranks, const std::vector<std::string>& environment,
                                   Store store) {
  const TemporaryFolder folder;
  c10::intrusive_ptr<c10d::TCPStore> served;
  if (store == Store::of_launcher) {
    c10d::TCPStoreOptions options;
    options.port = 0;
    options.isServer = true;
    options.waitWorkers = false;
    served = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
  }
  const int port = served != nullptr ? served->getPort() : free_port();
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    auto variables = environment;
    for (auto& variable :
         {fmt::format("RANK={}", rank), fmt::format("WORLD_SIZE={}", ranks), fmt::format("LOCAL_RANK={}", rank),
          std::string("MASTER_ADDR=127.0.0.1"), fmt::format("MASTER_PORT={}", port)}) {
      variables.push_back(variable);
    }
    if (served != nullptr) variables.push_back("TORCHELASTIC_USE_AGENT_STORE=True");
    std::vector<std::string> arguments{kMark, folder.path()};
    arguments.insert(arguments.end(), jobs.begin(), jobs.end());
    children.push_back(
        start_own_process(std::move(arguments), std::move(variables), folder.path() / fmt::format("{}.output", rank)));
  }
  std::vector<RankRun> runs;
  const auto statuses = wait_for(children);
  for (int rank = 0; rank < ranks; ++rank)
    runs.push_back(load(folder.path(), rank, statuses[static_cast<std::size_t>(rank)]));
  return runs;
}

std::vector<RankRun> simulate(const JobNames& jobs, int ranks) {
  std::vector<RankRun> runs(static_cast<std::size_t>(ranks));
  World world(options_of(ranks));
  const auto report = world.run(
      [&](RankContext& context) { run_jobs(jobs, context, runs[static_cast<std::size_t>(context.rank())].results); });
  for (int rank = 0; rank < ranks; ++rank) {
    auto& run = runs[static_cast<std::size_t>(rank)];
    run.report = report;
    run.exit_code = exit_code(report.verdict);
    run.events = event_lines(world, rank);
  }
  return runs;
}

std::optional<int> run_as_rank(int argc, char** argv) {
  if (argc < 4 || std::string(argv[1]) != kMark) return std::nullopt;
  end_with_the_test();
  try {
    auto options = options_of(1);
    options.mode = Mode::real;
    options.transport = Transport::gloo;
    World world(options);
    Results results;
    const JobNames jobs(argv + 3, argv + argc);
    const auto report = world.run([&](RankContext& context) { run_jobs(jobs, context, results); });
    save(argv[2], std::atoi(std::getenv("RANK")), world, report, results);
    return exit_code(report.verdict);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 70;
  }
}

}  // namespace rehearse::test
