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
// Blocking: run() returns when every rank has ended. Threads: a thread runs one world at a time.
// Errors: the report describes failures of ranks; run() does not throw them. The constructor throws
// std::invalid_argument, naming the field, for options that make no sense. run() throws std::system_error if the system
// has no room for so many ranks; the message names the limit and how to raise it. Inside a rank of another world, run()
// throws std::logic_error. If a real run cannot begin, it throws RunnerUnavailable. It also throws whatever the oracle
// throws, for example because a replay does not fit.
class World {
 public:
  using Body = std::function<void(RankContext&)>;

  explicit World(WorldOptions options);
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World();

  // Replaces the seeded scheduler by a replay, a search or a mock. Not owned; must outlive run().
  void use_oracle(Oracle& oracle);

  // Receives RankContext::progress() of rank 0, for people who watch the run.
  void on_progress(std::function<void(std::int64_t done, std::int64_t total, std::string_view text)> show);

  // Called before the body runs again to explain a run, see WorldOptions::explain_failures.
  void on_repeat(std::function<void()> say);

  // May be called repeatedly. Each run starts afresh, with the same seed. One call may run `body` several times on each
  // rank: see WorldOptions::explain_failures.
  Report run(const Body& body);

  // These describe the last run.
  const DecisionLog& decisions() const noexcept;
  const comm::EventLog& events() const noexcept;
  const std::vector<RankResult>& results() const noexcept;
  // If a second run explained the last one, these two describe the second run, whose calls have call sites. Otherwise
  // they describe the last run.
  const comm::EventLog& explained_events() const noexcept;
  const compiler::Journal& compiled() const noexcept;
  // Files outside the scratch folders (RankContext::scratch_folder()) to which ranks of a simulation wrote, except with
  // functions of stdio.
  const std::set<std::string>& files_written() const noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rehearse
