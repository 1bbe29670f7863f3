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

// Where some ranks recompile a function in a call and others do not, and nothing comes of it.
enum class CompileDivergence {
  remark,  // the report says so under OK
  fail,    // CHECK FAILED
};

// How a world is to be run. A plain value: name what you need, `{.ranks = 8, .seed = 7}`.
struct WorldOptions {
  int ranks = 2;
  std::uint64_t seed = 1;
  // Mode::real: on devices, or by processes. What is said of schedules, virtual time and models is then left out.
  Mode mode = Mode::simulation;
  Carrier carrier = Carrier::automatic;  // of a real run
  Schedule schedule = Schedule::random;
  sim::PctOptions pct = {};
  // May calls that never block switch, too: those of a store, and the program's own locks and unlocks? It finds races
  // between such calls, and makes more choices. Nothing: where many seeds are tried (a sweep, REHEARSE_RUNS).
  std::optional<bool> preempt = {};
  sim::NetworkModel network = {};
  sim::ComputeModel compute = {};
  compiler::CompileTimeModel compile_time = {};
  CompileDivergence compile_divergence = CompileDivergence::remark;
  checks::AutomaticChecks checks = {};  // what is checked unasked; in simulation only
  std::vector<Fault> faults = {};       // what goes wrong on purpose; in simulation only
  SwarmOptions swarm = {};              // and what may, beside that

  // Checkers, in simulation only: what is said of them is in docs/CHECKERS.md. Nothing: on in rehearse::check(), else
  // off.
  std::optional<bool> check_buffers = {};  // tensors that are touched between a call and its wait()
  std::optional<bool> check_sharing = {};  // memory that two ranks give to their calls

  // Of collectives, point-to-point operations and store waits, in virtual time.
  std::chrono::milliseconds timeout = std::chrono::minutes(30);
  // May a send complete before its receive is there? No: it finds the deadlocks that buffering hides.
  bool buffered_sends = false;
  // Do the sends and receives of a batch (between startCoalescing() and endCoalescing()) move together, when all of
  // them have met their peers, as NCCL launches them? It finds the hangs that this brings.
  bool coalesced_as_one = false;

  // Where the ranks' scratch folders are made, in a folder for each seed; empty: below the system's folder for
  // temporary files. See RankContext::scratch_folder().
  std::filesystem::path scratch = {};

  // What a rank's tensors may take on the CPU, in bytes: an allocation that would take more throws
  // c10::OutOfMemoryError, and the report says what was taken at most, and where. 0: any number, and nobody counts.
  std::uint64_t memory_bytes = 0;

  std::size_t stack_bytes = std::size_t{8} << 20;
  std::uint64_t steps_max = 1'000'000'000;

  // Keep every event (for traces), and where each operation was called (slow: a stack walk for each; keeps every event,
  // too).
  bool keep_all_events = false;
  bool call_sites = false;

  // On a failure, run the same seed again with `call_sites`, so that the report can say where earlier operations were
  // called. The body runs twice then, and a third time, without faults, where ranks had taken up from an
  // elastic::Checkpoint. The same, but for the third time and unless `explain_remarks` is off, where a run is OK and
  // there is something to remark.
  bool explain_failures = true;
  bool explain_remarks = true;
};

// As reports and banners name it: "random", "round_robin+preempt"; "real" where the machine decides.
inline std::string schedule_text(const WorldOptions& options) {
  if (options.mode == Mode::real) return "real";
  return sim::schedule_text(options.schedule, options.preempt.value_or(false));
}

}  // namespace rehearse
