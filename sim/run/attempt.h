// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <rehearse/exec/oracle.h>
#include <rehearse/job/report.h>
#include <rehearse/sim/world.h>
#include <rehearse_internal/sim/determinism.h>

// The one way to a run: the command and check() both go through it.
namespace rehearse::sim {

// What is run, the same each time.
struct AttemptOptions {
  std::string program;  // as reports and logs name it
  WorldOptions world;
  // For first_difference() to name the call in which two runs part; with WorldOptions::keep_all_events.
  bool keep_calls = false;
  // For people watching, see World::on_progress(); empty: nobody does.
  std::function<void(std::int64_t done, std::int64_t total, std::string_view text)> show = {};
};

// One run that has ended.
struct Attempt {
  Report report;  // with the program's name; files and replay line are the caller's
  RunPath path;
  std::unique_ptr<const World> world;  // that ran

  const comm::EventLog& events() const noexcept { return world->events(); }
};

// Runs `body` once on each rank. `answers` decides; null: the schedule and the seed of the options do. Blocks until
// every rank has ended. Throws what World::run() does.
Attempt run_once(const AttemptOptions& options, const World::Body& body, Oracle* answers = nullptr);

// In the headline of a run that ended, where the second one to compare it with was interrupted.
inline constexpr std::string_view kInSecondRun = "in the second run, before it could be compared with the first: ";

// Whether `second`, the same seed once more, took the way of `first`. Where it did not, or was interrupted before that
// was known, verdict and headline of `first` tell so.
bool took_same_way(Attempt& first, const Attempt& second);

}  // namespace rehearse::sim
