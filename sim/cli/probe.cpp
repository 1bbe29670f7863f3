// SPDX-License-Identifier: BSD-3-Clause
#include "cli/probe.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <rehearse_internal/exec/interrupt.h>
#include <rehearse_internal/sim/determinism.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/death/pipe.h"
#include "cli/death/signals.h"
#include "cli/job.h"
#include "cli/terminal/progress.h"

namespace rehearse::cli {
namespace {

constexpr std::uint64_t kProbedSeed = 1;
// A run that needs more has no number of steps: each seed then draws the number that it assumes.
constexpr std::uint64_t kMostProbedSteps = 200'000;
constexpr std::chrono::seconds kLongestProbe{10};

std::filesystem::path folder_of(const sim::Scenario& scenario, bool preempt) {
  return scenario.output.directory / (preempt ? "probe-preempt" : "probe");
}

std::uint64_t count_choices(sim::Scenario scenario, bool preempt) {
  auto& world = scenario.world;
  world.seed = kProbedSeed;
  world.faults.clear();
  world.swarm.on = false;
  world.explain_failures = world.explain_remarks = false;
  world.steps_max = std::min(world.steps_max, kMostProbedSteps);
  sim::take({.preempt = preempt, .patience = world.patience.value_or(sim::kPatience)}, world);
  scenario.output.directory = folder_of(scenario, preempt);
  scenario.output.leave_events_out();
  Console console({.quiet = true});
  const auto attempt = run_scenario(scenario, console);
  if (attempt.report.verdict == Verdict::step_budget) return 0;
  return sim::choices_of_fibers(attempt.path);
}

// Runs in a process of its own.
[[noreturn]] void probe(const sim::Scenario& scenario, bool preempt, int answer) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(nowhere, file);
  try {
    const auto choices = count_choices(scenario, preempt);
    write_whole(answer, &choices, sizeof choices);
  } catch (...) {  // then nothing is written
  }
  _exit(0);
}

class Probe {
 public:
  Probe(const sim::Scenario& scenario, bool preempt) : folder_(folder_of(scenario, preempt)) {
    auto pipe = make_pipe();
    const SignalsHeld held;
    pid_ = fork();
    if (pid_ == 0) {
      pipe.write_end.keep();
      probe(scenario, preempt, pipe.write_end.get());
    }
    answer_ = std::move(pipe.read_end);
  }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;
  ~Probe() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  // Waits for the end of the run, but not longer than until `end` or an interrupt.
  std::uint64_t steps(std::chrono::nanoseconds end) {
    if (pid_ < 0) return 0;
    std::uint64_t choices = 0;
    const bool has_answer = comes_before(end) && read_whole(answer_.get(), &choices, sizeof choices);
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    return has_answer ? choices : 0;
  }

 private:
  bool comes_before(std::chrono::nanoseconds end) const {
    pollfd waiting{answer_.get(), POLLIN, 0};
    for (;;) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - real_time());
      if (exec::interrupt_requested() || left < std::chrono::milliseconds(0)) return false;
      const int ready = poll(&waiting, 1, static_cast<int>(left.count()));
      if (ready > 0) return true;
    }
  }

  const std::filesystem::path folder_;
  pid_t pid_ = -1;
  Fd answer_;
};

}  // namespace

sim::ProbedSteps probe_steps(const Arguments& arguments, const sim::Scenario& scenario) {
  const auto& world = scenario.world;
  const bool needs_steps =
      !world.schedule || *world.schedule == Schedule::pct || *world.schedule == Schedule::deviations;
  if (!needs_steps || world.pct.steps > 0) return {};
  const std::chrono::seconds longest = arguments.time_limit.value_or(kLongestProbe);
  const auto end = real_time() + std::min(longest, kLongestProbe);
  std::optional<Probe> plain, preempted;
  if (!world.preempt.value_or(false)) plain.emplace(scenario, false);
  if (world.preempt.value_or(true)) preempted.emplace(scenario, true);
  return {.plain = plain ? plain->steps(end) : 0, .preempted = preempted ? preempted->steps(end) : 0};
}

}  // namespace rehearse::cli
