// SPDX-License-Identifier: BSD-3-Clause
#include "cli/sweep/workers.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <exception>
#include <system_error>

#include <fmt/format.h>
#include <poll.h>
#include <rehearse/sim/report_writers.h>
#include <rehearse_internal/archive/archive.h>
#include <rehearse_internal/exec/check.h>
#include <rehearse_internal/exec/watchdog.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/death/death.h"
#include "cli/death/pipe.h"
#include "cli/death/signals.h"
#include "cli/job.h"
#include "cli/terminal/progress.h"

namespace rehearse::cli {
namespace {

std::string manner(int status) {
  if (!WIFSIGNALED(status)) return fmt::format("with exit code {}", WEXITSTATUS(status));
  return "by " + signal_text(WTERMSIG(status));
}

// The last line usually says why: an assertion, a sanitizer's verdict, a stack overflow.
std::string last_line(const std::string& text) {
  const auto end = text.find_last_not_of(" \n\t\r");
  if (end == std::string::npos) return "";
  const auto start = text.rfind('\n', end);
  return text.substr(start + 1, end - start);
}

std::string headline(const SweepSetup& setup, std::optional<int> status, const CrashRecord& crash, int printed) {
  if (!status) return killed_headline(setup.arguments, crash);
  const auto said = last_line(contents(printed));
  return crash_headline(crash, manner(*status)) +
         (said.empty() || is_internal(crash) ? "" : "; its last words: " + said);
}

// Writes the report on a seed whose worker died with `status` (as waitpid() gives it) or, for an empty status, was
// killed because it exceeded its time. Also writes a log that replays the seed. Returns the report, and what went wrong
// while writing. `crash` is the worker's crash record, `printed` holds what it printed.
std::pair<Report, std::string> crash_report(const SweepSetup& setup, std::uint64_t seed, std::optional<int> status,
                                            const CrashRecord& crash, int printed) {
  auto scenario = setup.scenario;
  scenario.world.seed = seed;
  schedule_as_sweeps_do(scenario, setup.probed);
  scenario.output.leave_events_out();
  Report report = report_on_death(scenario, status ? Verdict::crashed : Verdict::interrupted,
                                  headline(setup, status, crash, printed), crash);
  try {
    const auto folder = seed_folder(scenario, seed);
    OutputFolder out(folder);
    out.keep();
    report.replay = replay_line(setup.arguments, scenario.world, out.log());
    report.files = sim::files_of(folder, scenario.output);
    keep_printed(printed, folder, report);
    sim::write_run_log(out.log(), begun_log(scenario, setup.arguments));
    sim::write_report_files(folder, scenario.output, {report});
    return {std::move(report), ""};
  } catch (const std::exception& error) {
    report.files.clear();
    return {std::move(report), error.what()};
  }
}

// The time between asking a run to end, asking again, and killing it.
constexpr auto kBetweenAsks = std::chrono::seconds(1);

Fd make_printed() {
  const int fd = memfd_create("printed", MFD_CLOEXEC);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), "a file for what a worker prints");
  return Fd(fd);
}

// Runs in the worker before anything else.
void become_worker(pid_t sweep, int printed, CrashRecord& crash) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != sweep) _exit(0);  // the sweep died before prctl() took effect
  obey_the_sweep(crash);
  dup2(printed, STDOUT_FILENO);
  dup2(printed, STDERR_FILENO);
}

}  // namespace

Workers::Workers(const SweepSetup& setup, int jobs) : setup_(setup) {
  for (int i = 0; i < jobs; ++i) processes_.push_back(spawn());
}

bool Workers::is_idle(const Process& process) noexcept { return process.pid >= 0 && !process.seed; }

Workers::~Workers() {
  for (auto& process : processes_) end(process, process.seed.has_value());
}

Workers::Process Workers::spawn() {
  auto seeds = make_pipe();
  auto answers = make_pipe();
  auto printed = make_printed();
  auto crash = make_shared_with_forks<CrashRecord>();
  const pid_t sweep = getpid();
  pid_t pid = -1;
  {
    const SignalsHeld held;
    pid = fork();
    if (pid == 0) become_worker(sweep, printed.get(), *crash);
  }
  if (pid < 0) throw std::system_error(errno, std::generic_category(), "a worker process");
  if (pid == 0) {
    // This worker must not keep the other workers' pipes open.
    processes_.clear();
    {
      const Fd theirs = std::move(seeds.write_end);
    }
    {
      const Fd theirs = std::move(answers.read_end);
    }
    for (const auto* const own : {&seeds.read_end, &answers.write_end, &printed}) own->keep();
    const CrashRecordScope scope(*crash);
    work(setup_, {seeds.read_end.get(), answers.write_end.get(), printed.get()});
  }
  Process process;
  process.pid = pid;
  process.seeds = std::move(seeds.write_end);
  process.answers = std::move(answers.read_end);
  process.printed = std::move(printed);
  process.crash = std::move(crash);
  return process;
}

bool Workers::has_idle() const noexcept { return std::ranges::any_of(processes_, is_idle); }

bool Workers::has_busy() const noexcept {
  return std::ranges::any_of(processes_, [](const auto& process) { return process.seed.has_value(); });
}

void Workers::start(std::uint64_t seed) {
  const auto idle = std::ranges::find_if(processes_, is_idle);
  REHEARSE_CHECK(idle != processes_.end(), seed, processes_.size());
  idle->seed = seed;
  idle->since = real_time();
  idle->asked = 0;
  *idle->crash = {};
  try {
    write_whole(idle->seeds.get(), &seed, sizeof seed);
  } catch (const std::system_error&) {
    // The worker is dead; wait() notices that.
  }
}

std::vector<Workers::Done> Workers::wait(std::chrono::milliseconds longest) {
  std::vector<pollfd> waiting;
  for (const auto& process : processes_) waiting.push_back({process.seed ? process.answers.get() : -1, POLLIN, 0});
  if (poll(waiting.data(), waiting.size(), static_cast<int>(longest.count())) < 0) {
    if (errno == EINTR) return {};
    throw std::system_error(errno, std::generic_category(), "waiting for workers");
  }
  std::vector<Done> done;
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    if (waiting[i].revents != 0) {
      done.push_back(take(processes_[i]));
    } else if (is_overdue(processes_[i])) {
      done.push_back(buried(processes_[i]));
    }
  }
  return done;
}

// Asks a run that exceeds its time to end, and asks again after kBetweenAsks. Returns true if the run still goes on
// after another kBetweenAsks; then the caller must kill its worker.
bool Workers::is_overdue(Process& process) const {
  const auto limit = setup_.arguments.time_limit;
  if (!limit || !process.seed) return false;
  const auto late = real_time() - process.since - *limit;
  if (late >= process.asked * kBetweenAsks && process.asked < 2) {
    if (process.asked == 1) note_call(*process.crash, exec::blocked_call(process.pid));
    kill(process.pid, SIGXCPU);
    ++process.asked;
  }
  return late >= 2 * kBetweenAsks;
}

Workers::Done Workers::take(Process& process) {
  std::size_t size = 0;
  if (!read_whole(process.answers.get(), &size, sizeof size)) return buried(process);
  std::string bytes(size, '\0');
  if (!read_whole(process.answers.get(), bytes.data(), size)) return buried(process);
  process.seed.reset();
  auto answer = archive::unpacked<WorkerAnswer>(bytes, "the answer of a worker");
  Done done{answer.seed,
            {answer.identity, answer.seconds, nullptr, std::move(answer.files), std::move(answer.remarks)},
            std::move(answer.error)};
  if (!answer.report.empty()) done.result.failure = std::make_unique<Report>(sim::report_from_json(answer.report));
  return done;
}

// The process is dead, or is overdue and gets killed. Makes a report for its seed, and starts another process in its
// place.
Workers::Done Workers::buried(Process& process) {
  REHEARSE_CHECK(process.seed.has_value() && process.pid >= 0, process.pid);
  // The sweep kills a worker after two requests to end. So if both were made, it does not matter how the worker died.
  const bool overdue = process.asked == 2;
  const int status = end(process, overdue);
  const double seconds = std::chrono::duration<double>(real_time() - process.since).count();
  Done done{*process.seed, {0, seconds, nullptr, {}}, ""};
  const std::optional<int> died = overdue ? std::nullopt : std::optional(status);
  auto [report, error] = crash_report(setup_, *process.seed, died, *process.crash, process.printed.get());
  done.result.failure = std::make_unique<Report>(std::move(report));
  done.error = std::move(error);
  process = spawn();
  return done;
}

// Returns the status with which the process ended. An idle process ends without a signal when no more seeds come.
int Workers::end(Process& process, bool kill) {
  if (process.pid < 0) return 0;
  if (kill) ::kill(process.pid, SIGKILL);
  {
    const Fd no_more_seeds = std::move(process.seeds);
  }
  int status = 0;
  while (waitpid(process.pid, &status, 0) < 0 && errno == EINTR) {
  }
  process.pid = -1;
  return status;
}

std::vector<std::uint64_t> Workers::abandon(std::optional<std::uint64_t> bound) {
  std::vector<std::uint64_t> abandoned;
  for (auto& process : processes_) {
    if (!process.seed || (bound && *process.seed <= *bound)) continue;
    abandoned.push_back(*process.seed);
    end(process, true);
    process.seed.reset();
  }
  return abandoned;
}

}  // namespace rehearse::cli
