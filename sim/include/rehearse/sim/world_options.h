// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <rehearse/checks/check_options.h>
#include <rehearse/job/compile_time_model.h>
#include <rehearse/job/runner.h>
#include <rehearse/sim/compute_model.h>
#include <rehearse/sim/fault.h>
#include <rehearse/sim/network_model.h>
#include <rehearse/sim/schedule.h>

namespace rehearse {

// The verdict if only some ranks recompile a function in a call, and the run is fine otherwise.
enum class CompileDivergence {
  remark,  // the report says so under OK
  fail,    // CHECK FAILED
};

// Which checkers run if no option of their own says otherwise.
enum class CheckLevel {
  none,
  standard,  // the memory checkers, and a comparison of replicas
  all,       // also AutomaticChecks::replicas and ::finite
};

// The names in scenarios and on command lines: "none", "default", "all", in the order above.
inline const std::vector<std::string>& check_level_names() {
  static const std::vector<std::string> names = {"none", "default", "all"};
  return names;
}

// How to run a world. A plain value: name the fields that you need, `{.ranks = 8, .seed = 7}`.
struct WorldOptions {
  int ranks = 2;
  std::uint64_t seed = 1;
  // For check() only: how many seeds to try, from `seed` on. REHEARSE_RUNS overrides it.
  std::uint64_t runs = 1;
  // Mode::real runs on devices or in several processes. The options for schedules, virtual time and models do not apply
  // then.
  Mode mode = Mode::simulation;
  Transport transport = Transport::automatic;  // for a real run
  // nullopt: random; if many seeds are tried (a sweep, REHEARSE_RUNS), the seeds take turns: sim::portfolio().
  std::optional<Schedule> schedule = {};
  sim::PctOptions pct = {};
  // Let fibers also switch at calls at which nobody has to wait: calls of a store, the program's own locks and unlocks,
  // its calls on files, sends, and receives from any source. This finds races between such calls, and adds choices to
  // the run. nullopt: on for most seeds if many are tried (a sweep, REHEARSE_RUNS), else off.
  std::optional<bool> preempt = {};
  // How long a rank that can run may be made to wait while time passes, as in a slow process. This finds races between
  // code, which otherwise takes no time, and what happens at a time: the end of a call, a sleep. Limits of waits do not
  // come closer by that. nullopt: sim::kPatience if many seeds are tried, else 0.
  std::optional<VirtualDuration> patience = {};
  // How long a call of the program on a file may take: each draws its time between 0 and this. 0: no time.
  VirtualDuration file_time{0};
  sim::NetworkModel network = {};
  sim::ComputeModel compute = {};
  compiler::CompileTimeModel compile_time = {};
  CompileDivergence compile_divergence = CompileDivergence::remark;
  CheckLevel check_level = CheckLevel::standard;  // in simulation only, like `checks` and the memory checkers
  checks::AutomaticChecks checks = {};            // state checks that run unasked
  std::vector<Fault> faults = {};                 // deliberate faults; in simulation only
  SwarmOptions swarm = {};                        // additional faults, which each seed draws

  // Memory checkers (docs/CHECKERS.md). nullopt: on unless `check_level` is none.
  std::optional<bool> check_buffers = {};  // finds tensors that the rank touches between a call and its wait()
  std::optional<bool> check_sharing = {};  // finds memory that two ranks pass to their calls

  // The timeout of collectives, point-to-point operations and store waits, in virtual time.
  std::chrono::milliseconds timeout = std::chrono::minutes(30);
  // True: a send may complete before its receive exists. False finds the deadlocks that buffering hides.
  bool buffered_sends = false;
  // True: the sends and receives of a batch (between startCoalescing() and endCoalescing()) move together, as NCCL
  // launches them: only once all of them are matched with their peers' calls. This finds the hangs that such a launch
  // causes.
  bool coalesced_as_one = false;

  // The date when the run begins, for the ranks' clocks. The same for each run, so that runs are alike.
  std::chrono::sys_seconds date = std::chrono::sys_days(std::chrono::year(2020) / 1 / 1);

  // The parent of the ranks' scratch folders; each seed gets a folder in it. Empty: the system's folder for temporary
  // files. See RankContext::scratch_folder().
  std::filesystem::path scratch = {};

  // How many bytes a rank's tensors may take on the CPU; 0: no limit. An allocation beyond the limit throws
  // c10::OutOfMemoryError. With a limit, or with a fault `fail_alloc`, the report has each rank's peak, and where the
  // rank allocated that memory.
  std::uint64_t memory_bytes = 0;

  std::size_t stack_bytes = std::size_t{8} << 20;
  std::uint64_t steps_max = 1'000'000'000;

  // Keep every event (for traces). `call_sites` does so, too, and also records where each operation is called. That is
  // slow, because each operation then walks the stack.
  bool keep_all_events = false;
  bool call_sites = false;

  // If a simulation fails (unless it was interrupted, or had `call_sites`), run the same seed again with `call_sites`,
  // so that the report can say where earlier operations were called. The body then runs twice. If the run has faults
  // and its ranks had resumed from an elastic::Checkpoint, the body may run a third time, without faults. With both
  // options, an OK run gets the second run, too, if its report has remarks about calls.
  bool explain_failures = true;
  bool explain_remarks = true;
};

namespace sim {

inline Strategy strategy_of(const WorldOptions& options) {
  return {.schedule = options.schedule.value_or(Schedule::random),
          .pct = options.pct,
          .preempt = options.preempt.value_or(false),
          .patience = options.patience.value_or(VirtualDuration::zero())};
}
void take(const Strategy& strategy, WorldOptions& options);
inline std::unique_ptr<Oracle> make_oracle(const WorldOptions& options) {
  return make_oracle(options.schedule.value_or(Schedule::random), options.seed, options.pct);
}

// The strategy of options.seed as one of many seeds: the seed decides what the options leave open. `probed`: counts
// only if options.pct has no steps.
Strategy strategy_among_many(const WorldOptions& options, const ProbedSteps& probed);

}  // namespace sim

// The schedule as reports and banners name it: "random", "round_robin+preempt", or "real" if the machine decides.
inline std::string schedule_text(const WorldOptions& options) {
  return options.mode == Mode::real ? "real" : sim::to_string(sim::strategy_of(options));
}

}  // namespace rehearse
