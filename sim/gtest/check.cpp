// SPDX-License-Identifier: BSD-3-Clause
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include <rehearse/exec/signal_io.h>
#include <rehearse/exec/watchdog.h>
#include <rehearse/rehearse.h>
#include <rehearse/sim/chrome_trace.h>
#include <rehearse/sim/determinism.h>
#include <rehearse/sim/oracles.h>
#include <rehearse/sim/report_writers.h>
#include <rehearse/sim/run_log.h>

#include "death_note.h"
#include "environment.h"
#include "rank_assertions.h"
#include "replay_note.h"
#include "test_identity.h"

namespace rehearse {
namespace {

// One check() of one test.
class Check {
 public:
  Check(WorldOptions options, World::Body body, std::source_location where)
      : options_(std::move(options)), body_(std::move(body)), where_(where), identity_(next_check()) {}

  void run(const Environment& environment) {
    trace_directory_ = environment.trace_directory;
    twice_ = environment.check_determinism;
    time_limit_ = environment.time_limit;
    options_.keep_all_events = options_.keep_all_events || !trace_directory_.empty() || twice_;
    if (!environment.replay.empty()) {
      const auto log = sim::read_run_log(environment.replay);
      const bool ours = log.program == identity_.name;
      note_replay(environment.replay, log.program, ours);
      if (ours) return replay(log, environment.replay);
    }
    if (environment.seed) options_.seed = *environment.seed;
    const std::uint64_t runs = environment.seed ? 1 : environment.runs;
    decide_preempt(environment, runs > 1);
    for (std::uint64_t i = 0; i < runs; ++i, ++options_.seed) {
      if (!run_seed()) return;
    }
  }

  // A failure at the line that called check().
  void fail(const std::string& text) const {
    GTEST_MESSAGE_AT_(where_.file_name(), static_cast<int>(where_.line()), text.c_str(),
                      ::testing::TestPartResult::kNonFatalFailure);
  }

 private:
  struct Outcome {
    Report report;
    sim::RunPath path;
    RankAssertions assertions;
  };

  // `again`: the command that does the same.
  Outcome simulate(Oracle& oracle, const std::string& again) {
    const DeathNote note(identity_.name, options_.seed, again);
    Outcome outcome{{}, {}, RankAssertions(options_)};
    World world(options_);
    sim::WitnessOracle witness(oracle);
    world.use_oracle(witness);
    const RankAssertions::Capture capture(outcome.assertions);
    outcome.report = run_in_time(world, outcome.assertions.wrap(body_), again);
    outcome.report.program = identity_.name;
    outcome.path = witness.path(world.decisions(), world.events().hash());
    if (twice_) outcome.path.calls = sim::calls_of(world.events());
    if (!trace_directory_.empty()) write_trace(world.events(), outcome.report);
    return outcome;
  }

  Report run_in_time(World& world, World::Body body, const std::string& again) const {
    if (!time_limit_) return world.run(body);
    const auto late = fmt::format("did not end within {} s (REHEARSE_TIME_LIMIT)", time_limit_->count());
    const exec::TimeLimit limit(*time_limit_, [&](const exec::Found& found) { end_overdue(late, again, found); });
    auto report = world.run(body);
    if (limit.is_over() && report.verdict == Verdict::interrupted) report.headline = late + ": " + report.headline;
    return report;
  }

  // On another thread, which alone can do anything: a rank that never switches cannot be ended.
  [[noreturn]] void end_overdue(const std::string& late, const std::string& again, const exec::Found& found) const {
    const auto text = fmt::format("INTERRUPTED: {} and had to be killed: {}\nended {}, seed {}; again: {}\n", late,
                                  exec::describe(found), identity_.name, options_.seed, again);
    exec::write_at_once(STDERR_FILENO, text.data(), text.size());
    for (;;) ::_exit(exit_code(Verdict::interrupted));
  }

  Outcome simulate_seed(const std::string& again) {
    return simulate(*sim::make_oracle(options_.schedule, options_.seed), again);
  }

  // The environment comes before what the test says, and that before what many seeds bring with them.
  void decide_preempt(const Environment& environment, bool many) {
    const auto of_test = options_.preempt.value_or(false);
    if (environment.preempt) options_.preempt = environment.preempt;
    if (!options_.preempt && many) options_.preempt = true;
    const auto decided = options_.preempt.value_or(false);
    if (decided != of_test) preempt_ = fmt::format("REHEARSE_PREEMPT={:d} ", decided);
  }

  // Returns whether all is well.
  bool run_seed() {
    const auto again = fmt::format("{}REHEARSE_SEED={:#x} {}", preempt_, options_.seed, identity_.command);
    auto outcome = simulate_seed(again);
    const bool differs = twice_ && outcome.report.verdict != Verdict::interrupted && compare(outcome, again);
    outcome.report.replay = (differs ? "REHEARSE_CHECK_DETERMINISM=1 " : "") + again;
    return conclude(outcome, true);
  }

  // Once more; does it take another way?
  bool compare(Outcome& first, const std::string& again) {
    const auto second = simulate_seed(again);
    if (second.report.verdict == Verdict::interrupted) {
      first.report.verdict = Verdict::interrupted;
      first.report.headline = "in the second run, before it could be compared: " + second.report.headline;
      return true;
    }
    const auto difference = sim::first_difference(first.path, second.path);
    if (!difference) return false;
    first.report.verdict = Verdict::nondeterminism;
    first.report.headline = fmt::format("two runs of seed {} took different ways: {}", options_.seed, difference->text);
    return true;
  }

  void replay(const sim::RunLog& log, const std::string& file) {
    if (!log.finished) return fail(fmt::format("{}: its run did not end; use REHEARSE_SEED={:#x}", file, log.seed));
    options_.seed = log.seed;
    options_.preempt = sim::says_preempt(log.finished->report.schedule);
    sim::ReplayOracle oracle(log.finished->decisions, sim::PastEnd::stop);
    const auto again = fmt::format("REHEARSE_REPLAY={} {}", file, identity_.command);
    try {
      auto outcome = simulate(oracle, again);
      oracle.require_used_up();
      outcome.report.replay = again;
      conclude(outcome, false);
      if (outcome.report.identity != log.finished->report.identity) {
        fail(
            fmt::format("{}: the replay took another way than the log: the same decisions, but other steps, "
                        "operations or times in between",
                        file));
      }
    } catch (const sim::ReplayError& error) {
      fail(fmt::format("{}: the replay took another way than the log: {}", file, error.what()));
    }
  }

  bool conclude(Outcome& outcome, bool keep_files) {
    Report& report = outcome.report;
    if (report.verdict == Verdict::ok) {
      for (const auto& remark : report.remarks) fmt::print(stderr, "rehearse: {}: {}\n", identity_.name, remark);
      outcome.assertions.forward("replay: " + report.replay);
      return !outcome.assertions.failed();
    }
    outcome.assertions.forward();
    const std::string trouble = keep_files ? write_files(outcome) : "";
    fail(trouble + sim::to_text(report));
    return false;
  }

  void write_trace(const comm::EventLog& events, const Report& report) const {
    std::error_code ignored;  // then the file cannot be written either
    std::filesystem::create_directories(trace_directory_, ignored);
    const auto file = std::filesystem::path(trace_directory_) / (identity_.folder + ".json");
    std::ofstream out(file, std::ios::binary);
    sim::write_chrome_trace(out, events, report);
    out.close();
    if (!out) throw EnvironmentError(fmt::format("REHEARSE_TRACE: {} cannot be written", file.string()));
  }

  // Returns what went wrong with it, for the failure.
  std::string write_files(Outcome& outcome) const {
    Report& report = outcome.report;
    const std::filesystem::path folder = std::filesystem::path("rehearse-out") / identity_.folder;
    try {
      std::filesystem::create_directories(folder);
      report.files = {(folder / "run.rlog").string(), (folder / "report.txt").string()};
      sim::RunLog log;
      log.program = identity_.name;
      log.seed = options_.seed;
      log.build = sim::executable_build_id();
      log.finished = {report, outcome.path.decisions};
      sim::write_run_log(folder / "run.rlog", log);
      std::ofstream out(folder / "report.txt", std::ios::binary);
      out << sim::to_text(report);
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
  std::string preempt_;  // what the environment must say to do the same again; empty: nothing
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
