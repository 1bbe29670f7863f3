// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <rehearse/comm/event_log.h>
#include <rehearse/exec/decision_log.h>
#include <rehearse/job/rank_context.h>
#include <rehearse/job/rank_result.h>
#include <rehearse/job/report.h>
#include <rehearse/sim/world_options.h>

namespace rehearse::compiler {
class Journal;
}  // namespace rehearse::compiler

namespace rehearse {

// The ranks of one job, simulated in this process and thread, or run for real (WorldOptions::mode).
//
//   rehearse::World world({.ranks = 4});
//   rehearse::Report report = world.run([](rehearse::RankContext& ctx) { ctx.group().barrier()->wait(); });
//
// Blocking: run() returns when every rank has ended. Threads: one world a thread at a time.
// Errors: what goes wrong in a rank is in the report, never thrown. The constructor throws std::invalid_argument for
// options that make no sense, naming the field. run() throws std::system_error if the system has no room for so many
// ranks, naming the limit and what raises it; std::logic_error inside a rank of another world; what the oracle throws
// (a replay that does not fit); and RunnerUnavailable.
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
  const std::vector<RankResult>& results() const noexcept;
  // Of the second run, where one explained the last: its calls know where they were made. Else of the last run.
  const comm::EventLog& explained_events() const noexcept;
  const compiler::Journal& compiled() const noexcept;
  // The files outside of their scratch folders (RankContext::scratch_folder()) to which ranks of a simulation wrote.
  const std::set<std::string>& files_written() const noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rehearse
