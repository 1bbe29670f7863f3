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

// The .rlog file of a run: everything that is needed to run it again (replay) and to show its report again (explain).
//
//   rehearse run log 2               the format's version
//   state: finished                  or `running`: written before the run; it stays if the process dies
//   verdict: DEADLOCK                this line and the next one: finished only
//   identity: 0xc0ffee12345678
//   program: lm_ddp
//   seed: 0x7
//   build: 2ae1b8ab34d2...           executable_build_id()
//   scenario: lm.toml                its path; \ and line ends are written \\ and \n
//   option: --ranks=4                any number of these
//   scenario text: 812               812 bytes of text follow, and a line end
//   decisions: 412 1033              finished only: 412 decisions follow in 1033 bytes, and a line end
//   report: 2034                     finished only: 2034 bytes of JSON follow (report_writers.h), and a line end
//   checksum: 0x0123456789abcdef     FNV-1a of all bytes before this line
//
// A DecisionList encodes the decisions' bytes.
namespace rehearse::sim {

struct RunLog {
  std::string program;
  std::uint64_t seed = 0;
  std::string build;          // executable_build_id() of the executable that made the run
  std::string scenario_path;  // empty: the run had none
  std::string scenario_text;
  std::vector<std::string> options;  // options that change what runs, as a user would type them

  struct Finished {
    Report report;
    std::vector<Decision> decisions;
  };
  std::optional<Finished> finished;  // empty: still running, or the process died
};

// A run log cannot be written or read; what() is `<file>: <what is wrong>`.
class RunLogError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Writes the log to `file`. The folder of `file` must exist. If `file` is new or an ordinary file, it then holds the
// whole log; after an error or a crash it is as it was. Throws RunLogError.
void write_run_log(const std::filesystem::path& file, const RunLog& log);

// Throws RunLogError if the file does not exist, is too large, is no run log, has another version, is cut off (the
// error says where) or is damaged.
RunLog read_run_log(const std::filesystem::path& file);

// run_log_bytes() returns the content of a log's file; parse_run_log() reads it back. `name`: the file's name, for
// errors. parse_run_log() throws RunLogError.
std::string run_log_bytes(const RunLog& log);
RunLog parse_run_log(std::string_view bytes, const std::string& name);

// A BytesMost for read_input(): how large a run log may be, and 0 for another kind of file.
std::size_t run_log_bytes_most(std::string_view beginning) noexcept;

// The linker's identification of the running executable (its GNU build id) in hexadecimal. Two builds of the same
// sources with the same options agree. "none" if the executable was linked without one. Does not throw.
std::string executable_build_id();

}  // namespace rehearse::sim
