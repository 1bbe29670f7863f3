// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <rehearse/job/parameters.h>
#include <rehearse/job/verdict.h>
#include <rehearse/sim/world.h>
#include <rehearse_internal/sim/output_options.h>

// Scenario files: which program to run, in what world, and where the results go. The format is TOML. Only `program` is
// required:
//
//   program = "lm_ddp"              # a REHEARSE_PROGRAM of the executable
//
//   [world]
//   ranks = 8
//   seed = 1                        # or a text, for seeds from 2^63 on: "0xf00d000000000001"
//   timeout = "30min"
//
//   [parameters]                    # the program's own, see ParameterSpec
//   steps = 5
//
// docs/GUIDE.md lists all keys of the table in sim/scenario/scenario_keys.h. sim/schedule/units.h lists the units.
//
// A text parameter that is "." or ".." or begins with "./" or "../" is a path relative to the scenario file.
namespace rehearse::sim {

// A complete, checked scenario. A plain value.
struct Scenario {
  std::string program;                 // registered in this executable
  std::string executable;              // empty: the file names none
  std::vector<std::string> arguments;  // of the program itself; see ProgramSpec::takes_arguments
  WorldOptions world;
  Parameters parameters;
  OutputOptions output;
  // The expected verdict. If the run ends as expected (cli/expectation.h), the command exits with 0.
  Verdict expect = Verdict::ok;
};

// A scenario that cannot be run. what() lists all problems, one on a line, in the order of the file's lines:
//   lm.toml:4: [world] ranks is "eight"; it takes an integer from 1 to 65536
class ScenarioError : public std::runtime_error {
 public:
  explicit ScenarioError(std::vector<std::string> problems);

  const std::vector<std::string>& problems() const noexcept { return problems_; }

 private:
  std::vector<std::string> problems_;
};

// Reads and checks a file. Throws ScenarioError, also if the file cannot be read.
Scenario read_scenario(const std::filesystem::path& file);

// The same for a text. `origin` replaces the file's name in errors and in the default output directory. Text parameters
// that are paths are relative to `base`. Throws ScenarioError.
Scenario parse_scenario(std::string_view text, const std::string& origin, const std::filesystem::path& base = {});

// A scenario file for `scenario`. It states defaults, too, but leaves out sections that are off and a few keys that
// have their default values. parse_scenario() reads the same scenario back.
std::string to_toml(const Scenario& scenario);

}  // namespace rehearse::sim
