// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <rehearse/exec/decision_log.h>
#include <rehearse/job/report.h>

// The .rlog file of a run: all that is needed to run it again (replay) and to show its report again
// (explain).
//
//   rehearse run log 2               the format's version
//   state: finished                  or running: the process ended before the run did
//   verdict: DEADLOCK                finished only, as identity
//   identity: 0xc0ffee12345678
//   program: lm_ddp
//   seed: 0x7
//   build: 2ae1b8ab34d2...           executable_build_id()
//   scenario: lm.toml                its path; \ and line ends are written \\ and \n
//   option: --ranks=4                any number of these
//   scenario text: 812               that many bytes follow, and a line end; so with the next two
//   decisions: 412 1033              finished only: how many, and in how many bytes
//   report: 2034                     finished only: JSON, see report_writers.h
//   checksum: 0x0123456789abcdef     FNV-1a of all bytes before this line
//
// The decisions' bytes are those of a DecisionList.
namespace rehearse::sim {

// A plain value.
struct RunLog {
  std::string program;
  std::uint64_t seed = 0;
  std::string build;          // executable_build_id() of the executable that ran
  std::string scenario_path;  // empty: there was none
  std::string scenario_text;
  std::vector<std::string> options;  // what was put over the scenario, as written on the command line

  struct Finished {
    Report report;
    std::vector<Decision> decisions;
  };
  std::optional<Finished> finished;  // nothing: still running, or the process died
};

// A run log cannot be written or read; what() is `<file>: <what is wrong>`.
class RunLogError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Puts the log at `file`, whose folder exists: either the whole new file is there afterwards, or what was
// there before. Written once before a run, without `finished`, it keeps the seed of a run that crashes.
// Throws RunLogError.
void write_run_log(const std::filesystem::path& file, const RunLog& log);

// Throws RunLogError: no such file, too large, not a run log, another version, cut off (where), damaged.
RunLog read_run_log(const std::filesystem::path& file);

// The file's bytes, and back; `name` stands for the file in errors. Throws RunLogError.
std::string run_log_bytes(const RunLog& log);
RunLog parse_run_log(std::string_view bytes, const std::string& name);

// For read_input(): how large a run log may be.
std::size_t run_log_bytes_most(std::string_view beginning) noexcept;

// The linker's identification of the running executable (its GNU build id), in hexadecimal: two builds of the
// same sources with the same options agree. "none" when it was linked without. Does not throw.
std::string executable_build_id();

}  // namespace rehearse::sim
