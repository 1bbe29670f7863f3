// SPDX-License-Identifier: BSD-3-Clause
#include <cctype>
#include <csignal>
#include <filesystem>
#include <optional>
#include <system_error>

#include <c10/util/Logging.h>
#include <fmt/format.h>
#include <rehearse/job/runner.h>
#include <rehearse_internal/exec/machine_time.h>
#include <rehearse_internal/exec/watchdog.h>
#include <rehearse_internal/job/launched.h>
#include <rehearse_internal/job/rank_note.h>
#include <rehearse_internal/job/run_options.h>

#include "cli/commands.h"
#include "cli/death/death.h"
#include "cli/death/signals.h"
#include "cli/death/watcher.h"
#include "cli/expectation.h"
#include "cli/grammar/usage_error.h"
#include "cli/job.h"
#include "cli/launch/launcher.h"
#include "cli/merge/merge_folder.h"
#include "cli/output_folder.h"
#include "cli/terminal/exit_codes.h"
#include "record/begun_report.h"

namespace rehearse::cli {
namespace {

// Adds the line of a rank about which nothing else is known.
void add_line(int rank, Report& report) {
  RankLine& line = report.rank_lines.emplace_back();
  line.rank = rank;
  line.state = RankOutcome::failed;
  line.doing = kWithoutAWord;
}

// A second interrupt may come after the rank's body has ended, while the rank waits for the other ranks. Then the line
// says how the body ended.
void add_end_of_body(const RankNote::Known& known, RankLine& line) {
  line.state = *known.ended;
  line.at = known.ended_at;
  line.doing = known.what;
  line.where = {};
}

// Completes the report on the death of a process that was `rank`. Call this at the moment of the death: the rank's line
// gets the current time. If the run had not begun, the line has no time. Adds what the rank had recorded: how many
// calls it had made, and which call it completed last. If the verdict is INTERRUPTED, also adds for which ranks the
// rank waited, or how and when its body had ended.
void add_what_was_known(int rank, const RankNote::Known& known, Report& report) {
  if (report.rank_lines.empty()) add_line(rank, report);
  RankLine& line = report.rank_lines.front();
  line.last = known.completed_last;
  line.at = known.began ? kTimeZero + (exec::machine_time() - *known.began) : RankLine::kNotKnown;
  if (known.began) report.end_time = line.at;
  report.operations = known.calls;
  if (report.verdict != Verdict::interrupted) return;
  if (known.ended) return add_end_of_body(known, line);
  if (line.state == RankOutcome::blocked) line.waits_for = known.waits_for;
}

// True if NVIDIA's driver has made device files.
bool has_gpus() {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/dev", ignored)) {
    const auto name = entry.path().filename().string();
    if (name.starts_with("nvidia") && name.size() > 6 && std::isdigit(static_cast<unsigned char>(name[6])) != 0)
      return true;
  }
  return false;
}

// Prints the banner. If the scenario leaves the transport open, also says which transport the ranks will use, as far as
// that is known in advance.
void note_the_run(const sim::Scenario& scenario, bool is_one_of_several, Console& console) {
  console.note(banner(scenario));
  if (scenario.world.transport != Transport::automatic) return;
  if (!has_gpus()) {
    console.note(
        "with=automatic: this machine has no NVIDIA GPU, so each rank is a process and gloo moves the tensors\n");
  } else if (!is_one_of_several) {
    console.note("with=automatic: all ranks are in one process, and NCCL moves the tensors\n");
  }
}

std::string again(const Arguments& arguments) {
  std::string line = fmt::format("{} run {}", command_word(arguments.self), shell_word(arguments.operand));
  for (const auto& option : options_given(arguments)) line += " " + option;
  return line;
}

// A real run in this process. If a launcher started this process as one rank, the run has only that rank here;
// otherwise it has all ranks, on the GPUs.
class RealRun {
 public:
  RealRun(const Arguments& arguments, sim::Scenario scenario, std::optional<LaunchedProcess> process, Console& console)
      : arguments_(arguments),
        scenario_(std::move(scenario)),
        process_(process),
        console_(console),
        folder_(process ? rank_folder(scenario_.output.directory, process->rank) : scenario_.output.directory) {
    scenario_.output.want_what_modes_share();
  }

  int run() {
    const InterruptibleScope interruptible(is_launched_by_us() ? "" : kRunInterrupted);  // the launcher prints it
    const auto note = make_shared_with_forks<RankNote>();
    const LentRankNote lent(*note);
    const Watcher watcher([&](const CrashRecord& crash) { return died(crash, note->known()); });
    auto attempt = run_in_time();
    Report& report = attempt.report;
    const auto left_out = sim::leave_out_large_files(scenario_.output, attempt.events().size());
    if (!left_out.empty()) report.remarks.push_back(left_out);
    return leave(report, {report, &attempt.events(), &attempt.world->results(), nullptr, &attempt.world->compiled()});
  }

 private:
  sim::Attempt run_in_time() {
    std::optional<exec::TimeLimit> limit;
    if (arguments_.time_limit) limit.emplace(*arguments_.time_limit, Watcher::end_overdue);
    auto attempt = run_scenario(scenario_, console_);
    if (limit && limit->is_over() && attempt.report.verdict == Verdict::interrupted)
      attempt.report.headline = past_its_time(arguments_) + ": " + attempt.report.headline;
    return attempt;
  }

  // Runs in the watching process when this process dies.
  int died(CrashRecord crash, const RankNote::Known& known) {
    if (crash.rank < 0 && crash.signal != 0 && process_) crash.rank = process_->rank;
    // Prefer the call of c10d or of the store in which the rank waits: it tells more than the system call.
    if (!known.waits_in.empty()) note_call(crash, known.waits_in);
    scenario_.output.leave_events_out();
    const bool overdue = arguments_.time_limit && crash.signal == SIGXCPU;
    Report report = overdue
                        ? report_on_death(scenario_, Verdict::interrupted, killed_headline(arguments_, crash), crash)
                        : report_on_death(scenario_, crash);
    if (process_) add_what_was_known(process_->rank, known, report);
    console_.end_progress();
    return leave(report, {report});
  }

  // Writes the files, prints the outcome and returns the exit code. A process that our launcher started prints nothing,
  // because the launcher merges the files of all. A process that another launcher started prints its verdict and
  // headline, or with --json its report.
  int leave(Report& report, const sim::RunResults& results) {
    folder_.keep();
    auto files = sim::files_of(folder_.path(), scenario_.output);
    files.erase(files.begin());  // only a simulation has a log of decisions
    report.files = std::move(files);
    report.replay = again(arguments_);
    std::string problem;
    try {
      sim::write_report_files(folder_.path(), scenario_.output, results);
    } catch (const OutputError& error) {
      problem = fmt::format("{}; the files of this run are missing or incomplete\n", error.what());
      report.files.clear();
    }
    const int code = told(report);
    if (problem.empty()) return code;
    Console::error(problem);
    return code == 0 ? kExitOutput : code;
  }

  int told(const Report& report) {
    if (is_launched_by_us()) return exit_code(report.verdict);
    if (!process_) return conclude(scenario_, report, console_);
    if (arguments_.json) return console_.conclude(report);
    auto text = fmt::format("[{}] {}: {}\n", process_->rank, to_string(report.verdict), report.headline);
    if (process_->rank == 0) {
      text += fmt::format("all ranks: {} merge {}\n", command_word(arguments_.self),
                          shell_word(scenario_.output.directory.string()));
    }
    return console_.conclude(text, exit_code(report.verdict));
  }

  const Arguments& arguments_;
  sim::Scenario scenario_;
  const std::optional<LaunchedProcess> process_;
  Console& console_;
  OutputFolder folder_;
};

// Adds the run's facts to a report that has none, because no rank left a report.
void tell_of(const sim::Scenario& scenario, Report& report) {
  const auto begun = sim::begun_report(scenario.world, scenario.program);
  report.program = begun.program;
  report.seed = begun.seed;
  report.schedule = begun.schedule;
  report.version = begun.version;
}

int run_in_processes(const Arguments& arguments, sim::Scenario scenario, Console& console) {
  scenario.output.want_what_modes_share();
  const FolderLock lock(scenario.output.directory);
  OutputFolder folder(scenario.output.directory);
  folder.set_ranks_aside(scenario.world.ranks);
  const InterruptibleScope interruptible(kRanksInterrupted);
  const auto ends = launch_ranks({arguments.words, scenario.world.ranks, folder.path(), arguments.time_limit});
  // If a rank could not even begin, its process has said why.
  for (const auto& end : ends.ranks) {
    if (end.code == kExitUsage || end.code == kExitUnavailable) return end.code;
  }
  folder.keep();
  auto report = merged_report_of(folder.path(), scenario.world.ranks, ends.ranks);
  if (report.program.empty()) tell_of(scenario, report);
  if (ends.interrupted || (ends.overdue && report.verdict != Verdict::ok)) {
    const auto why = ends.overdue ? past_its_time(arguments) : "from outside";
    // Each rank has the same time limit. If the limit ended a rank, the headline may already say so.
    if (!report.headline.starts_with(why)) report.headline = fmt::format("{}: {}", why, report.headline);
    report.verdict = Verdict::interrupted;
  }
  report.replay = again(arguments);
  const int code = leave_merged(report, folder.path(), scenario.output, exit_code_of(scenario, report), console);
  tell_unexpected(scenario, report);
  return code;
}

void require_ranks(const Arguments& arguments, sim::Scenario& scenario, const LaunchedProcess& process) {
  if (arguments.gives("--ranks") && scenario.world.ranks != process.size) {
    throw UsageError(fmt::format("--ranks is {}, but {} says that this job has {} processes; leave --ranks out",
                                 scenario.world.ranks, process.rank_variable, process.size));
  }
  scenario.world.ranks = process.size;
}

}  // namespace

int run_for_real(const Arguments& arguments, sim::Scenario scenario, Console& console) {
  if (arguments.check_determinism) {
    throw UsageError(
        "--check-determinism runs a seed twice and compares; a real run is never the same twice: `validate` compares "
        "one with the simulation");
  }
  require_real_runner();
  const auto process = launched_process();
  if (process && is_launched_by_us()) c10::initLogging();  // reads the log level that the launcher has set
  if (process) require_ranks(arguments, scenario, *process);
  if (!is_launched_by_us() && (!process || process->rank == 0)) note_the_run(scenario, process.has_value(), console);
  const auto transport = scenario.world.transport;
  if (!process && (transport == Transport::automatic ? !has_gpus() : is_of_processes(transport)))
    return run_in_processes(arguments, std::move(scenario), console);
  return RealRun(arguments, std::move(scenario), process, console).run();
}

}  // namespace rehearse::cli
