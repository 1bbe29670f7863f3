// SPDX-License-Identifier: BSD-3-Clause
#include "cli/sweep/worker.h"

#include <cerrno>
#include <csignal>
#include <exception>
#include <system_error>

#include <fmt/format.h>
#include <rehearse/sim/report_writers.h>
#include <rehearse_internal/archive/archive.h>
#include <rehearse_internal/exec/interpreter.h>
#include <rehearse_internal/exec/interrupt.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/death/death.h"
#include "cli/death/pipe.h"
#include "cli/expectation.h"
#include "cli/job.h"
#include "cli/terminal/progress.h"

namespace rehearse::cli {
namespace {

class Worker {
 public:
  Worker(const SweepSetup& setup, WorkerFiles files)
      : setup_(setup), files_(files), scenario_(setup.scenario), world_(setup.scenario.world) {
    scenario_.output.leave_events_out();  // to get the events of one seed, run it alone
    world_.explain_remarks = false;       // a run of a seed alone says where its calls are
  }

  void run() {
    std::uint64_t seed = 0;
    while (read_whole(files_.seeds, &seed, sizeof seed)) {
      if (exec::interpreter() == nullptr) {
        answer(seed);
      } else {
        answer_in_copy(seed);
      }
    }
  }

 private:
  // An interpreter keeps what a run has changed, so each run has a process of its own.
  void answer_in_copy(std::uint64_t seed) {
    Console::flush();
    const auto copy = fork();
    if (copy < 0) throw std::system_error(errno, std::generic_category(), "a process for a seed");
    if (copy == 0) {
      answer(seed);
      Console::flush();
      _exit(0);
    }
    int status = 0;
    while (waitpid(copy, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(status)) die_as(WTERMSIG(status));
    if (WEXITSTATUS(status) != 0) _exit(WEXITSTATUS(status));
  }

  // The copy has recorded its death.
  static void die_as(int signal) {
    ::signal(signal, SIG_DFL);
    raise(signal);
  }

  void answer(std::uint64_t seed) {
    // Forget an interrupt request that arrived while the previous seed was ending.
    exec::clear_interrupt();
    forget_printed();
    const auto start = real_time();
    scenario_.world = world_;
    scenario_.world.seed = seed;
    schedule_as_sweeps_do(scenario_, setup_.probed);
    auto attempt = run_scenario(scenario_, console_);
    Report& report = attempt.report;
    // Only the sweep interrupts a worker's run.
    if (report.verdict == Verdict::interrupted)
      report.headline = past_its_time(setup_.arguments) + ": " + report.headline;
    WorkerAnswer answer;
    answer.seed = seed;
    answer.identity = report.identity;
    if (!came_as_expected(scenario_, report)) {
      if (scenario_.expect != Verdict::ok)
        report.headline = fmt::format("{}: {}", expectation(scenario_, report), report.headline);
      answer.error = leave_files(attempt);
      answer.report = sim::to_json(report);
    } else {
      answer.remarks = report.remarks;
    }
    const auto& files = attempt.world->files_written();
    answer.files.assign(files.begin(), files.end());
    answer.seconds = std::chrono::duration<double>(real_time() - start).count();
    const std::string bytes = archive::packed(answer);
    const std::size_t size = bytes.size();
    write_whole(files_.answers, &size, sizeof size);
    write_whole(files_.answers, bytes.data(), size);
  }

  // Returns what went wrong; empty: nothing. The worker sends the report in either case.
  std::string leave_files(sim::Attempt& attempt) {
    Report& report = attempt.report;
    const auto folder = seed_folder(scenario_, report.seed);
    try {
      OutputFolder out(folder);
      out.keep();
      report.replay = replay_line(setup_.arguments, scenario_.world, out.log());
      report.files = sim::files_of(folder, scenario_.output);
      keep_printed(files_.printed, folder, report);
      write_run_files(out, scenario_, attempt, begun_log(scenario_, setup_.arguments));
      return "";
    } catch (const std::exception& failed) {
      report.files.clear();
      return failed.what();
    }
  }

  void forget_printed() const {
    Console::flush();
    if (ftruncate(files_.printed, 0) != 0)
      throw std::runtime_error("the file of what a worker printed cannot be emptied");
  }

  const SweepSetup& setup_;
  const WorkerFiles files_;
  sim::Scenario scenario_;
  WorldOptions world_;  // without a seed's own strategy
  Console console_{{.quiet = true}};
};

}  // namespace

std::filesystem::path seed_folder(const sim::Scenario& scenario, std::uint64_t seed) {
  return scenario.output.directory / fmt::format("seed-{}", seed);
}

std::string replay_line(Arguments arguments, const WorldOptions& world, const std::filesystem::path& log) {
  if (arguments.gives("--swarm") || arguments.gives("--fault")) {
    resolve(world, arguments);
    arguments.give(*sim::find_scenario_flag("--seed"), fmt::format("{}", world.seed));
    return seed_replay_line(arguments);
  }
  return fmt::format("{} replay {}", command_word(arguments.self), shell_word(log.string()));
}

void keep_printed(int printed, const std::filesystem::path& folder, Report& report) {
  Console::flush();
  const auto text = contents(printed);
  if (text.empty()) return;
  const auto file = folder / "output.txt";
  sim::write_file(file, [&](std::ostream& out) { out << text; });
  report.files.push_back(file.string());
}

void work(const SweepSetup& setup, WorkerFiles files) {
  int code = 0;
  try {
    Worker(setup, files).run();
  } catch (...) {
    code = exit_code_of_exception(setup.arguments.self);
  }
  // Skip the destructors of static objects: the parent process has them, too.
  _exit(code);
}

}  // namespace rehearse::cli
