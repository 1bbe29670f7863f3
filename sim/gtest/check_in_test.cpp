// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rehearse/rehearse.h>
#include <rehearse/sim/report_writers.h>
#include <rehearse_internal/exec/rank_of_thread.h>
#include <rehearse_internal/exec/signal_io.h>
#include <rehearse_internal/exec/watchdog.h>
#include <rehearse_internal/sim/chrome_trace.h>
#include <rehearse_internal/sim/determinism.h>
#include <rehearse_internal/sim/run_log.h>
#include <signal.h>
#include <unistd.h>

#include "rank_assertions.h"
#include "run/attempt.h"
#include "run/run_files.h"
#include "test_environment.h"

namespace rehearse {
namespace {

// A signal that ends the process (a fault, abort()) prevents the report. While a DeathNote exists, such a signal writes
// one line to stderr: which check, seed and rank were running, and how to run the check again. Then the signal takes
// its usual effect.
//
// If several notes exist, the newest one counts.
class DeathNote {
 public:
  // `command` runs the check again: "REHEARSE_SEED=0x1a ./my_test --gtest_filter=Suite.Test".
  DeathNote(const std::string& check, std::uint64_t seed, const std::string& command);
  DeathNote(const DeathNote&) = delete;
  DeathNote& operator=(const DeathNote&) = delete;
  ~DeathNote();

 private:
  static constexpr std::array kSignals = {SIGSEGV, SIGABRT, SIGALRM, SIGBUS, SIGFPE, SIGILL};
  static void on_signal(int signal, siginfo_t* info, void* context);

  static DeathNote* g_living;
  DeathNote* const outer_;
  std::string before_rank_, after_rank_;  // the parts of the line
  std::array<struct sigaction, kSignals.size()> previous_{};
};

void write(std::string_view text) { exec::write_at_once(STDERR_FILENO, text.data(), text.size()); }

DeathNote* DeathNote::g_living = nullptr;

DeathNote::DeathNote(const std::string& check, std::uint64_t seed, const std::string& command)
    : outer_(g_living),
      before_rank_("rehearse: a fatal signal on "),
      after_rank_(fmt::format(" ended {}, seed {}; again: {}\n", check, seed, command)) {
  g_living = this;
  struct sigaction action{};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &action, &previous_[i]);
}

DeathNote::~DeathNote() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &previous_[i], nullptr);
  g_living = outer_;
}

// Calls only functions that are safe in a signal handler.
void DeathNote::on_signal(int signal, siginfo_t* info, void*) {
  DeathNote& note = *g_living;
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &note.previous_[i], nullptr);
  write(note.before_rank_);
  if (const int rank = exec::rank_of_thread().rank; rank >= 0) {
    char number[16];
    const auto end = std::to_chars(number, number + sizeof number, rank).ptr;
    write("rank ");
    write({number, static_cast<std::size_t>(end - number)});
  } else {
    write("no rank");
  }
  write(note.after_rank_);
  if (info->si_code <= 0) ::raise(signal);  // another process or thread sent it; a fault would repeat by itself
}

class ReplayNote final : public ::testing::EmptyTestEventListener {
 public:
  struct Log {
    std::string program;
    bool taken = false;
  };

  void OnTestProgramEnd(const ::testing::UnitTest&) override {
    for (const auto& [file, log] : logs) {
      if (log.taken) continue;
      fmt::print(stderr,
                 "rehearse: no check used REHEARSE_REPLAY={}: the test \"{}\" wrote that log, and it did not run\n",
                 file, log.program);
    }
  }

  std::map<std::string, Log> logs;  // by file
};

// Notes that a check saw the log `file` of REHEARSE_REPLAY, which `program` wrote, and whether the check replayed it.
// If no check replays the log, the test program says so on stderr at its end, because its tests then ran without the
// log. This is no failure: under ctest, each test may be a process of its own.
void note_replay(const std::string& file, const std::string& program, bool taken) {
  static ReplayNote& note = [&]() -> ReplayNote& {
    auto* const made = new ReplayNote;  // GoogleTest owns it
    ::testing::UnitTest::GetInstance()->listeners().Append(made);
    return *made;
  }();
  auto& log = note.logs[file];
  log.program = program;
  log.taken |= taken;
}

struct CheckIdentity {
  std::string name;     // "Suite.Test", "Suite.Test#2" for the test's second check; "check" outside tests
  std::string folder;   // the name without characters that separate paths
  std::string command;  // runs the test alone: "./my_test --gtest_filter=Suite.Test"
};

// Returns 1 for the first check of a test. If a test runs again (--gtest_repeat), the count starts over.
int count_check(const ::testing::TestInfo* test) {
  static std::pair<const ::testing::TestInfo*, ::testing::TimeInMillis> counted;
  static int count = 0;
  const std::pair running{test, test->result()->start_timestamp()};
  if (running != counted) count = 0;
  counted = running;
  return ++count;
}

// Counts the running test's checks: call it once for each check.
CheckIdentity next_check() {
  const std::string self = program_invocation_name;
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  if (test == nullptr) return {"check", "check", self};
  CheckIdentity identity;
  identity.name = fmt::format("{}.{}", test->test_suite_name(), test->name());
  identity.command = fmt::format("{} --gtest_filter={}", self, identity.name);
  const int number = count_check(test);
  if (number > 1) identity.name += fmt::format("#{}", number);
  identity.folder = identity.name;
  std::replace(identity.folder.begin(), identity.folder.end(), '/', '_');
  return identity;
}

class Check {
 public:
  Check(WorldOptions options, World::Body body, std::source_location where)
      : options_(std::move(options)), body_(std::move(body)), where_(where), identity_(next_check()) {}

  void run(const Environment& environment) {
    trace_directory_ = environment.trace_directory;
    twice_ = environment.check_determinism;
    time_limit_ = environment.time_limit;
    options_.keep_all_events = options_.keep_all_events || !trace_directory_.empty() || twice_;
    const std::uint64_t runs = environment.gives("REHEARSE_SEED") ? 1 : environment.runs.value_or(options_.runs);
    options_.runs = 1;
    if (!environment.replay.empty()) {
      const auto log = sim::read_run_log(environment.replay);
      const bool ours = log.program == identity_.name;
      note_replay(environment.replay, log.program, ours);
      if (ours) return replay(log, environment.replay);
    }
    const auto of_test = sim::strategy_of(options_);
    for (const auto& [row, text] : environment.given) row->value.set(options_, text, sim::Spelling::typed);
    const auto asked = options_;
    for (std::uint64_t i = 0; i < runs; ++i, ++options_.seed) {
      if (runs > 1) sim::take(strategy_of_next_seed(asked), options_);
      const auto strategy = sim::strategy_of(options_);
      schedule_ = strategy == of_test ? "" : fmt::format("REHEARSE_SCHEDULE={} ", sim::to_string(strategy));
      if (!run_seed()) return;
    }
  }

  // Reports a failure at the line that called check().
  void fail(const std::string& text) const {
    GTEST_MESSAGE_AT_(where_.file_name(), static_cast<int>(where_.line()), text.c_str(),
                      ::testing::TestPartResult::kNonFatalFailure);
  }

 private:
  struct Outcome {
    sim::Attempt attempt;
    RankAssertions assertions;
  };

  // `again`: the command that repeats this run. `answers` makes the choices; null: the schedule and the seed do.
  Outcome simulate(const std::string& again, Oracle* answers = nullptr) {
    const DeathNote note(identity_.name, options_.seed, again);
    Outcome outcome{{}, RankAssertions(options_)};
    const RankAssertions::Capture capture(outcome.assertions);
    outcome.attempt = run_in_time(outcome.assertions.wrap(body_), again, answers);
    if (!trace_directory_.empty()) write_trace(outcome.attempt);
    return outcome;
  }

  sim::Attempt run_in_time(const World::Body& body, const std::string& again, Oracle* answers) const {
    const sim::AttemptOptions options{.program = identity_.name, .world = options_, .keep_calls = twice_};
    if (!time_limit_) return sim::run_once(options, body, answers);
    const auto late = fmt::format("did not end within {} s (REHEARSE_TIME_LIMIT)", time_limit_->count());
    const exec::TimeLimit limit(*time_limit_, [&](const exec::Found& found) { end_overdue(late, again, found); });
    auto attempt = sim::run_once(options, body, answers);
    Report& report = attempt.report;
    if (limit.is_over() && report.verdict == Verdict::interrupted) report.headline = late + ": " + report.headline;
    return attempt;
  }

  // Runs on the watchdog's thread. A rank that never switches cannot be ended alone, so this ends the process.
  [[noreturn]] void end_overdue(const std::string& late, const std::string& again, const exec::Found& found) const {
    const auto text = fmt::format("INTERRUPTED: {} and had to be killed: {}\nended {}, seed {}; again: {}\n", late,
                                  exec::describe(found), identity_.name, options_.seed, again);
    exec::write_at_once(STDERR_FILENO, text.data(), text.size());
    for (;;) ::_exit(exit_code(Verdict::interrupted));
  }

  sim::Strategy strategy_of_next_seed(WorldOptions asked) const {
    asked.seed = options_.seed;
    return sim::strategy_among_many(asked, probed_);
  }

  // Returns true if the run is OK and no assertion failed.
  bool run_seed() {
    const auto again = fmt::format("{}REHEARSE_SEED={:#x} {}", schedule_, options_.seed, identity_.command);
    auto outcome = simulate(again);
    auto& steps = options_.preempt.value_or(false) ? probed_.preempted : probed_.plain;
    steps = std::max(steps, sim::choices_of_fibers(outcome.attempt.path));
    Report& report = outcome.attempt.report;
    const bool differs = twice_ && report.verdict != Verdict::interrupted &&
                         !sim::took_same_way(outcome.attempt, simulate(again).attempt);
    report.replay = (differs ? "REHEARSE_CHECK_DETERMINISM=1 " : "") + again;
    return conclude(outcome, true);
  }

  void replay(const sim::RunLog& log, const std::string& file) {
    if (!log.finished) return fail(fmt::format("{}: its run did not end; use REHEARSE_SEED={:#x}", file, log.seed));
    options_.seed = log.seed;
    if (const auto strategy = sim::parse_strategy(log.finished->report.schedule)) sim::take(*strategy, options_);
    const auto again = fmt::format("REHEARSE_REPLAY={} {}", file, identity_.command);
    std::optional<Outcome> outcome;
    const auto run = [&](Oracle& answers) -> const Report& {
      return outcome.emplace(simulate(again, &answers)).attempt.report;
    };
    const auto other_way = sim::replay_log(log, run);
    if (outcome) {
      outcome->attempt.report.replay = again;
      conclude(*outcome, false);
    }
    if (!other_way.empty()) fail(fmt::format("{}: {}", file, other_way));
  }

  bool conclude(Outcome& outcome, bool keep_files) {
    const Report& report = outcome.attempt.report;
    if (report.verdict == Verdict::ok) {
      for (const auto& remark : report.remarks) fmt::print(stderr, "rehearse: {}: {}\n", identity_.name, remark);
      outcome.assertions.forward("replay: " + report.replay);
      return !outcome.assertions.failed();
    }
    outcome.assertions.forward();
    const std::string trouble = keep_files ? write_files(outcome.attempt) : "";
    fail(trouble + sim::to_text(report));
    return false;
  }

  void write_trace(const sim::Attempt& attempt) const {
    std::error_code ignored;  // writing the file then reports the failure
    std::filesystem::create_directories(trace_directory_, ignored);
    const auto file = std::filesystem::path(trace_directory_) / (identity_.folder + ".json");
    std::ofstream out(file, std::ios::binary);
    sim::write_chrome_trace(out, attempt.events(), attempt.report);
    out.close();
    if (!out) throw EnvironmentError(fmt::format("REHEARSE_TRACE: {} cannot be written", file.string()));
  }

  // Returns what went wrong, as text for the failure; empty: nothing.
  std::string write_files(sim::Attempt& attempt) const {
    Report& report = attempt.report;
    const std::filesystem::path folder = std::filesystem::path("rehearse-out") / identity_.folder;
    const auto output = sim::OutputOptions::only("report");
    try {
      std::filesystem::create_directories(folder);
      report.files = sim::files_of(folder, output);
      sim::RunLog log;
      log.program = identity_.name;
      log.seed = options_.seed;
      log.build = sim::executable_build_id();
      log.finished = {report, attempt.path.decisions};
      sim::write_run_log(sim::log_in(folder), log);
      sim::write_report_files(folder, output, {report});
      return "";
    } catch (const std::exception& error) {
      report.files.clear();
      return fmt::format("(its files could not be written: {})\n", error.what());
    }
  }

  WorldOptions options_;
  World::Body body_;
  std::source_location where_;
  CheckIdentity identity_;
  std::string trace_directory_;
  std::string schedule_;     // what the environment must set to repeat the run; empty: nothing
  sim::ProbedSteps probed_;  // of the runs so far
  bool twice_ = false;
  std::optional<std::chrono::seconds> time_limit_;
};

}  // namespace

void check(WorldOptions options, World::Body body, std::source_location where) {
  Check check(std::move(options), std::move(body), where);
  try {
    check.run(read_environment([](const char* name) -> const char* { return std::getenv(name); }));
  } catch (const EnvironmentError& error) {
    check.fail(error.what());
  } catch (const sim::RunLogError& error) {
    check.fail(error.what());
  }
}

}  // namespace rehearse
