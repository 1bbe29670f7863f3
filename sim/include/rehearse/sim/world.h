// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <rehearse/comm/communicators.h>
#include <rehearse/compile/compile_time_model.h>
#include <rehearse/exec/decision_log.h>
#include <rehearse/job/rank_context.h>
#include <rehearse/job/report.h>
#include <rehearse/sim/compute_model.h>
#include <rehearse/sim/network_model.h>
#include <rehearse/sim/schedule.h>

namespace rehearse {

// Where some ranks recompile a function in a call and others do not, and nothing comes of it.
enum class CompileDivergence {
  remark,  // the report says so under OK
  fail,    // CHECK FAILED
};

// How a world is to be simulated. A plain value: name what you need, `{.ranks = 8, .seed = 7}`.
struct WorldOptions {
  int ranks = 2;
  std::uint64_t seed = 1;
  Schedule schedule = Schedule::random;
  // May calls that never block switch, too: those of a store, and the program's own locks and unlocks? It finds races
  // between such calls, and makes more choices. Nothing: where many seeds are tried (a sweep, REHEARSE_RUNS).
  std::optional<bool> preempt = {};
  sim::NetworkModel network = {};
  sim::ComputeModel compute = {};
  compiler::CompileTimeModel compile_time = {};
  CompileDivergence compile_divergence = CompileDivergence::remark;

  // Of collectives, point-to-point operations and store waits, in virtual time.
  std::chrono::milliseconds timeout = std::chrono::minutes(30);
  // May a send complete before its receive is there? No: it finds the deadlocks that buffering hides.
  bool buffered_sends = false;
  // Do the sends and receives of a batch (between startCoalescing() and endCoalescing()) move together, when all of
  // them have met their peers, as NCCL launches them? It finds the hangs that this brings.
  bool coalesced_as_one = false;

  std::size_t stack_bytes = std::size_t{8} << 20;
  std::uint64_t steps_max = 1'000'000'000;

  // Keep every event (for traces), and where each operation was called (slow: a stack walk for each; keeps every event,
  // too).
  bool keep_all_events = false;
  bool call_sites = false;

  // On a failure, run the same seed again with `call_sites`, so that the report can say where earlier operations were
  // called. The body runs twice then. The same, unless `explain_remarks` is off, where a run is OK and there is
  // something to remark.
  bool explain_failures = true;
  bool explain_remarks = true;
};

// As reports and banners name it: "random", "round_robin+preempt".
std::string schedule_text(const WorldOptions& options);

// The ranks of one job, simulated in this process and thread.
//
//   rehearse::World world({.ranks = 4});
//   rehearse::Report report = world.run([](rehearse::RankContext& ctx) { ctx.group().barrier()->wait(); });
//
// Blocking: run() returns when every rank has ended. Threads: one world a thread at a time.
// Errors: what goes wrong in a rank is in the report, never thrown. run() throws std::invalid_argument for options
// that make no sense, naming the field, and what the oracle throws (a replay that does not fit).
class World {
 public:
  using Body = std::function<void(RankContext&)>;

  explicit World(WorldOptions options);
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World();

  // Takes the place of the seeded scheduler: a replay, a search, a mock. Not owned; outlives run().
  void use_oracle(Oracle& oracle);

  // For people watching: RankContext::progress() of rank 0.
  void on_progress(std::function<void(std::int64_t done, std::int64_t total, std::string_view text)> show);

  // May be called again: each run starts afresh, with the same seed.
  Report run(const Body& body);

  // Of the last run.
  const DecisionLog& decisions() const noexcept;
  const comm::EventLog& events() const noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rehearse
