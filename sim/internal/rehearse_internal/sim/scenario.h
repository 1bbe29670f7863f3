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

// Scenario files: which program to run, in what world, and where the results go. TOML; every key but `program` may be
// left out:
//
//   program = "lm_ddp"              # a REHEARSE_PROGRAM of the executable
//
//   [world]
//   ranks = 8
//   seed = 1                        # or a text, for seeds above 2^63: "0xf00d000000000001"
//   timeout = "30min"
//
//   [parameters]                    # the program's own, see ParameterSpec
//   steps = 5
//
// docs/GUIDE.md lists all keys, as sim/scenario/scenario_keys.cpp has them.
//
// Durations take ns, us, ms, s, min, h; sizes B, KB, MB, GB, TB, KiB, MiB, GiB, TiB; bandwidths a size and
// "/s", or Mbit/s, Gbit/s, Tbit/s; operations FLOP/s, KFLOP/s to PFLOP/s. A parameter's text that is "." or ".." or
// begins with "./" or "../" is a path relative to the scenario file.
namespace rehearse::sim {

// A scenario, complete and checked. A plain value.
struct Scenario {
  std::string program;     // registered in this executable
  std::string executable;  // empty: not said
  WorldOptions world;
  Parameters parameters;
  OutputOptions output;
  Verdict expect = Verdict::ok;  // what the run should come to: the command's exit code is then 0
};

// A scenario that cannot be run. what() is all problems, one line for each, in order of the file's lines:
//   lm.toml:4: [world] ranks is "eight"; it takes an integer from 1 to 65536
class ScenarioError : public std::runtime_error {
 public:
  explicit ScenarioError(std::vector<std::string> problems);

  const std::vector<std::string>& problems() const noexcept { return problems_; }

 private:
  std::vector<std::string> problems_;
};

// Reads and checks a file. Throws ScenarioError, also when the file cannot be read.
Scenario read_scenario(const std::filesystem::path& file);

// The same for a text. `origin` stands for the file's name in errors and names the output directory; paths
// are relative to `base`. Throws ScenarioError.
Scenario parse_scenario(std::string_view text, const std::string& origin, const std::filesystem::path& base = {});

// A file that says all of `scenario`, defaults included; parse_scenario() makes the same scenario of it.
std::string to_toml(const Scenario& scenario);

}  // namespace rehearse::sim
