// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <rehearse/exec/oracle.h>
#include <rehearse_internal/sim/run_log.h>
#include <rehearse_internal/sim/scenario.h>

#include "cli/grammar/arguments.h"
#include "cli/output_folder.h"
#include "cli/terminal/console.h"
#include "run/attempt.h"

namespace rehearse::cli {

// The scenario that the command line names, with its options put over it. Throws ScenarioError.
sim::Scenario scenario_of(const Arguments& arguments);

// Throws UsageError for the folder of a run in the place of its log.
void require_no_folder(const std::string& log);

// Throws UsageError where a scenario is to be run for real; `what` cannot do that: "sweep".
void require_simulation(const sim::Scenario& scenario, const std::string& file, std::string_view what);

// Those options as they are typed, for replay lines and logs.
std::vector<std::string> options_given(const Arguments& arguments);

// "train replay train.toml --seed=7 --swarm": what runs a seed of a sweep alone, by the sweep's arguments or its own.
std::string seed_replay_line(const Arguments& arguments, std::optional<std::uint64_t> seed);

// A sweep's seeds may switch at calls that do not block, too, unless the scenario says otherwise.
void preempt_as_sweeps_do(sim::Scenario& scenario);

// "rehearse 0.1.0 program=lm_ddp seed=7 schedule=random ranks=8": the first line of a run, so that a run that
// dies has named its seed.
std::string banner(const sim::Scenario& scenario);

// A word for a shell: as it is when that is safe, else in quotes.
std::string shell_word(const std::string& word);

// The log of a run that has not ended yet; it is on disk before the run is, for runs that never come back.
sim::RunLog begun_log(const sim::Scenario& scenario, const Arguments& arguments);

// Runs the scenario's program once and shows its progress. `answers` decides; null: its schedule and seed do. Throws
// what the oracle throws.
sim::Attempt run_scenario(const sim::Scenario& scenario, Console& console, Oracle* answers = nullptr);

// The log with the report of the run that `attempt` was, and the files that the scenario's [output] asks for. Throws
// OutputError and RunLogError.
void write_run_files(const OutputFolder& folder, const sim::Scenario& scenario, const sim::Attempt& attempt,
                     sim::RunLog log);

}  // namespace rehearse::cli
