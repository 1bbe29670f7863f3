// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <filesystem>
#include <limits>
#include <set>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rehearse_internal/exec/interrupt.h>

#include "cli/commands.h"
#include "cli/death/signals.h"
#include "cli/expectation.h"
#include "cli/grammar/usage_error.h"
#include "cli/job.h"
#include "cli/output_folder.h"
#include "cli/probe.h"
#include "cli/sweep/junit.h"
#include "cli/sweep/shard_file.h"
#include "cli/sweep/summary.h"
#include "cli/sweep/sweep_page.h"
#include "cli/sweep/workers.h"
#include "cli/terminal/exit_codes.h"
#include "cli/terminal/progress.h"

namespace rehearse::cli {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(100);

// Without the number of steps.
std::string strategy_of_seed(WorldOptions world, std::uint64_t seed) {
  world.seed = seed;
  return sim::to_string(sim::strategy_among_many(world, {}));
}

class Sweep {
 public:
  Sweep(const Arguments& arguments, const sim::Scenario& scenario, const sim::ProbedSteps& probed, Console& console)
      : scenario_(scenario),
        console_(console),
        setup_{arguments, scenario, probed},
        failures_wanted_(arguments.keep_going ? std::numeric_limits<std::size_t>::max()
                                              : static_cast<std::size_t>(arguments.max_failures.value_or(1))),
        bound_(arguments.seeds->last) {
    outcome_.program = scenario.program;
    outcome_.expect = scenario.expect;
    outcome_.asked = *arguments.seeds;
  }

  SweepOutcome run(int jobs) {
    Workers workers(setup_, jobs);
    Progress progress(
        console_.notes_on_terminal(), [this](std::string_view text) { console_.note(text); }, real_time,
        Progress::Lines::seconds);
    auto next = outcome_.asked.first;
    bool all_started = false;
    for (;;) {
      while (!all_started && next <= bound_ && workers.has_idle()) {
        all_started = next == outcome_.asked.last;
        workers.start(next++);
      }
      if (!workers.has_busy()) break;
      outcome_.interrupted = exec::interrupt_requested();
      if (outcome_.interrupted) break;
      for (auto& done : workers.wait(kRedraw)) take(std::move(done), workers);
      progress.show(static_cast<std::int64_t>(outcome_.results.size()),
                    static_cast<std::int64_t>(outcome_.asked.count()), failures_text());
    }
    progress.clear();
    for (const auto seed : workers.abandon()) remove_seed_folder(seed_folder(scenario_, seed));
    forget_above_bound();
    return std::move(outcome_);
  }

 private:
  void take(Workers::Done done, Workers& workers) {
    if (!done.error.empty()) Console::error(fmt::format("seed {}: {}\n", done.seed, done.error));
    // If a worker died, nobody has compared its result with the expectation yet.
    if (done.result.failure && came_as_expected(scenario_, *done.result.failure)) {
      remove_seed_folder(seed_folder(scenario_, done.seed));
      done.result.failure.reset();
    }
    const bool failed = done.result.failure != nullptr;
    done.result.strategy = strategy_of_seed(scenario_.world, done.seed);
    outcome_.results.insert_or_assign(done.seed, std::move(done.result));
    if (!failed) return;
    failures_.insert(done.seed);
    if (failures_.size() < failures_wanted_) return;
    // Let lower seeds finish: the speed of the workers must not decide which failures the sweep reports.
    outcome_.stopped = true;
    bound_ = *std::next(failures_.begin(), static_cast<std::ptrdiff_t>(failures_wanted_ - 1));
    for (const auto seed : workers.abandon(bound_)) remove_seed_folder(seed_folder(scenario_, seed));
  }

  void forget_above_bound() {
    auto& results = outcome_.results;
    for (auto above = results.upper_bound(bound_); above != results.end(); above = results.erase(above)) {
      if (above->second.failure) remove_seed_folder(seed_folder(scenario_, above->first));
    }
  }

  std::string failures_text() const {
    if (failures_.empty()) return "no failures";
    return fmt::format("{} failure{}, the first with seed {}", failures_.size(), failures_.size() == 1 ? "" : "s",
                       *failures_.begin());
  }

  const sim::Scenario& scenario_;
  Console& console_;
  const SweepSetup setup_;
  const std::size_t failures_wanted_;
  std::uint64_t bound_;  // the sweep ignores higher seeds
  std::set<std::uint64_t> failures_;
  SweepOutcome outcome_;
};

// What the seeds' strategies depend on: the one that is fixed, or the mix and the steps that the probe has counted.
std::string schedule_of(const sim::Scenario& scenario, const sim::ProbedSteps& probed) {
  const auto steps =
      probed.plain + probed.preempted == 0 ? "" : fmt::format(" steps={}/{}", probed.plain, probed.preempted);
  if (scenario.world.schedule) return strategy_of_seed(scenario.world, scenario.world.seed) + steps;
  const auto all = sim::portfolio();
  const auto& preempt = scenario.world.preempt;
  const auto fits = [&](const sim::Strategy& each) { return !preempt || each.preempt == *preempt; };
  return fmt::format("mix of {}{}", std::ranges::count_if(all, fits) + 2, steps);
}

int jobs_of(const Arguments& arguments) {
  const auto processors = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const auto most = static_cast<int>(std::min<std::uint64_t>(arguments.seeds->count(), 1024));
  return std::min(arguments.jobs.value_or(processors), most);
}

std::string banner(const sim::Scenario& scenario, const sim::ProbedSteps& probed, const Arguments& arguments,
                   int jobs) {
  return fmt::format("rehearse {} program={} seeds={} schedule={} ranks={} jobs={}\n", REHEARSE_VERSION,
                     scenario.program, to_string(*arguments.seeds), schedule_of(scenario, probed), scenario.world.ranks,
                     jobs);
}

bool leave_shard(const Arguments& asked, const sim::Scenario& scenario, const SweepOutcome& outcome) {
  if (!asked.shard) return true;
  return Console::leave([&] { write_shard(scenario, *asked.shard, *asked.seeds, outcome); });
}

// A shard writes no page, because `merge` reports the bugs.
bool leave_page(const Arguments& asked, const sim::Scenario& scenario, const SweepOutcome& outcome, Console& console) {
  if (asked.shard || !scenario.output.wants("html")) return true;
  return leave_sweep_page(scenario.output.directory, outcome, console);
}

void require_seeded(const sim::Scenario& scenario, const Arguments& arguments) {
  if (!scenario.world.schedule || arguments.seeds->count() <= 1) return;
  const auto schedule = *scenario.world.schedule;
  if (sim::depends_on_seed(schedule)) return;
  std::vector<std::string> seeded;
  for (const auto each : sim::all_schedules()) {
    if (sim::depends_on_seed(each)) seeded.push_back(fmt::format("\"{}\"", to_string(each)));
  }
  throw UsageError(fmt::format(
      "{}: [world] schedule is \"{}\", which makes the same choices whatever the seed; a sweep takes {}, or "
      "none, by which its seeds take turns",
      arguments.operand, to_string(schedule), fmt::join(seeded, ", ")));
}

}  // namespace

int sweep(const Arguments& asked, Console& console) {
  auto arguments = asked;
  if (asked.shard) arguments.seeds = part_of(*asked.seeds, *asked.shard);
  auto scenario = scenario_of(arguments);
  require_simulation(scenario, arguments.operand, "sweep");
  require_seeded(scenario, arguments);
  require_junit(arguments.junit);
  const int jobs = jobs_of(arguments);
  const FolderLock lock(scenario.output.directory,
                        asked.shard ? FolderLock::Sharing::parts : FolderLock::Sharing::none);
  prepare_sweep_folder(scenario.output.directory, *arguments.seeds);
  if (asked.shard) std::filesystem::remove(shard_file(scenario.output.directory, *asked.shard));
  const InterruptibleScope interruptible(kSweepInterrupted);
  const auto probed = probe_steps(arguments, scenario);
  console.note(banner(scenario, probed, arguments, jobs));
  const auto outcome = Sweep(arguments, scenario, probed, console).run(jobs);
  const auto text = arguments.json ? to_json(outcome) : to_text(outcome, console.color());
  const int code = console.conclude(text, exit_code(outcome));
  const bool all_left = leave_junit(arguments.junit, outcome.program, outcome.results) &&
                        leave_shard(asked, scenario, outcome) && leave_page(asked, scenario, outcome, console);
  return all_left || code != 0 ? code : kExitOutput;
}

}  // namespace rehearse::cli
