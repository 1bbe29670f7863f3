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
#include <rehearse_internal/sim/run_log.h>

// The command and check() both start their runs through this file.
namespace rehearse::sim {

// Two runs that are compared need the same options.
struct AttemptOptions {
  std::string program;  // its name in reports and logs
  WorldOptions world;
  // Keep the calls, so that first_difference() can name the call at which two runs part. Needs
  // WorldOptions::keep_all_events.
  bool keep_calls = false;
  // Shows progress to people, see World::on_progress(); empty: shows nothing.
  std::function<void(std::int64_t done, std::int64_t total, std::string_view text)> show = {};
  std::function<void()> say_repeat = {};  // see World::on_repeat()
};

struct Attempt {
  Report report;  // has the program's name; the caller fills in files and replay line
  RunPath path;
  std::unique_ptr<const World> world;

  const comm::EventLog& events() const noexcept { return world->events(); }
};

// Makes one World::run() of `body`. `answers` makes the choices; null: an oracle for the schedule and the seed of the
// options. Blocks until every rank has ended. Throws what World::run() throws.
Attempt run_once(const AttemptOptions& options, const World::Body& body, Oracle* answers = nullptr);

// The headline begins with this text if the second of two runs that are compared was interrupted.
inline constexpr std::string_view kInSecondRun = "in the second run, before it could be compared with the first: ";

// True if `second`, another run of the same seed, took the same path as `first`, and ranks reported the same results.
// Otherwise changes the verdict and headline of `first` to say so.
bool took_same_way(Attempt& first, const Attempt& second);

// Repeats the run of a finished log with the log's decisions. `run` carries out the replay and returns its report,
// which must stay valid until this function returns. If the logged run was interrupted, the replay is interrupted at
// the same point. Returns an empty text if the replay was the same run (then ended_as_log() is true), or if somebody
// interrupted the replay earlier. Otherwise, and if `run` throws ReplayError, returns "the replay differs from the log:
// ...".
std::string replay_log(const RunLog& log, const std::function<const Report&(Oracle& answers)>& run);

// True if the replay that `report` describes reached the point at which the log ends.
bool ended_as_log(const RunLog& log, const Report& report);

}  // namespace rehearse::sim
