// SPDX-License-Identifier: BSD-3-Clause
#pragma once

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

// The scenario that the command line names, changed by the command line's options. Throws UsageError and ScenarioError.
sim::Scenario scenario_of(const Arguments& arguments);

// Sets the options that the command line gives.
void set_given(const Arguments& arguments, sim::Scenario& scenario);

// Throws UsageError if the user gave the folder of a run instead of its log.
void require_no_folder(const std::string& log);

// Throws UsageError if the scenario asks for a real run. `what`: the command that cannot make real runs, such as
// "sweep".
void require_simulation(const sim::Scenario& scenario, const std::string& file, std::string_view what);

// The options that change what runs, as a user would type them. Replay lines and logs contain them.
std::vector<std::string> options_given(const Arguments& arguments);

// The command that runs one seed alone, with the options in `arguments`: "train replay train.toml --seed=7 --swarm".
std::string seed_replay_line(const Arguments& arguments);

// Names the strategy of `world` in the arguments, so that a replay line repeats it.
void resolve(const WorldOptions& world, Arguments& arguments);

// Gives the scenario the strategy of its seed as one of many, as far as it leaves that open.
void schedule_as_sweeps_do(sim::Scenario& scenario, const sim::ProbedSteps& probed);

// The first line of a run, so that a run that dies has named its seed: "rehearse 0.1.0 program=lm_ddp seed=7
// schedule=random ranks=8".
std::string banner(const sim::Scenario& scenario);

// A word in a form for a shell: unchanged if that is safe, otherwise in quotes.
std::string shell_word(const std::string& word);
// The same for the command itself: argv[0].
std::string command_word(const std::string& self);

// The log of a run that has not ended yet. The command writes it before the run, for runs that never come back.
sim::RunLog begun_log(const sim::Scenario& scenario, const Arguments& arguments);

// Runs the scenario's program once and shows its progress. `answers` makes the choices; null: schedule and seed do.
// Throws what the oracle throws.
sim::Attempt run_scenario(const sim::Scenario& scenario, Console& console, Oracle* answers = nullptr);

// Writes the log, with the report of the run in `attempt`, and the files that the scenario's [output] asks for. Throws
// OutputError and RunLogError.
void write_run_files(const OutputFolder& folder, const sim::Scenario& scenario, const sim::Attempt& attempt,
                     sim::RunLog log);

}  // namespace rehearse::cli
