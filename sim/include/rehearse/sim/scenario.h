// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <rehearse/job/parameters.h>
#include <rehearse/sim/output_options.h>
#include <rehearse/sim/world.h>

// Scenario files: which program to run, in what world, and where the results go. TOML; every key but
// `program` may be left out. What a file may say, with the values that hold when it does not:
//
//   program = "lm_ddp"              # a REHEARSE_PROGRAM of the executable
//   executable = ""                 # file or target that holds the program, for errors to name
//
//   [world]
//   ranks = 2                       # 1 to 65536
//   seed = 1                        # or a text, for seeds above 2^63: "0xf00d000000000001"
//   schedule = "random"             # random, round_robin
//   timeout = "30min"               # of every operation, in virtual time; "0s": none
//   buffered_sends = false
//   coalesced_as_one = false
//   stack = "8MiB"                  # of each rank
//   steps_max = 1000000000
//
//   [network]
//   latency = "5us"
//   bandwidth = "50GB/s"
//   jitter = 0.0                    # 0 to 100: an operation takes up to this much longer
//
//   [compute]                       # what operators take (ComputeModel); a key that is left out: no time
//   flops = "20TFLOP/s"
//   bandwidth = "2TB/s"
//   per_operator = "5us"
//
//   [compile]                       # of rehearse::compile()
//   per_node = "0s"                 # what compiling takes, for each node of a graph
//   jitter = 0.0                    # 0 to 100: a compilation takes up to this much longer
//   divergence = "remark"           # remark, fail: where ranks do not recompile together, and nothing comes of it
//
//   [parameters]                    # the program's own, see ParameterSpec
//   [output]
//   directory = "rehearse-out/<name of the file>"   # relative to the current directory
//   report = true                   # report.txt
//   json = true                     # report.json
//   trace = true                    # trace.json; left out above 50,000 operations unless the file says it
//   flight_recorder = true          # flight_recorder.json; the same
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
