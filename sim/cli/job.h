// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <rehearse/exec/oracle.h>
#include <rehearse/sim/determinism.h>
#include <rehearse/sim/scenario.h>

#include "arguments.h"
#include "console.h"

namespace rehearse::cli {

// The scenario that the command line names, with its options put over it. Throws ScenarioError.
sim::Scenario scenario_of(const Arguments& arguments);

// Throws UsageError for the folder of a run in the place of its log.
void require_no_folder(const std::string& log);

// Those options as they are typed, for replay lines and logs.
std::vector<std::string> options_given(const Arguments& arguments);

// "rehearse 0.1.0 program=lm_ddp seed=7 schedule=random ranks=8": the first line of a run, so that a run that
// dies has named its seed.
std::string banner(const sim::Scenario& scenario);

// A word for a shell: as it is when that is safe, else in quotes.
std::string shell_word(const std::string& word);

// A scenario's program and a world for it. Both arguments outlive it.
class Job {
 public:
  Job(const sim::Scenario& scenario, Console& console);

  struct Outcome {
    Report report;  // with the program's name; files and replay line are the caller's
    sim::RunPath path;
  };

  // Runs the program once; `answers` decides. Shows progress. Throws what the oracle throws.
  Outcome run(Oracle& answers);

  const World& world() const noexcept { return world_; }

 private:
  const sim::Scenario& scenario_;
  Console& console_;
  World world_;
};

}  // namespace rehearse::cli
