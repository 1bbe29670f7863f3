// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rehearse/comm/event_log.h>
#include <rehearse/job/report.h>
#include <rehearse_internal/job/run_record.h>
#include <rehearse_internal/sim/output_options.h>

// The files that a run leaves in its folder: a report in several forms, and the decision log. The forms are one table;
// what writes, cleans up, and reads and prints [output] goes through it. A new one is its writer and a row here.
namespace rehearse::sim {

// What a report file is made of.
struct RunResults {
  const Report& report;
  const comm::EventLog* events = nullptr;            // null: gone with the process that ran
  const std::vector<RankResult>* results = nullptr;  // the same
  const comm::EventLog* explained = nullptr;         // World::explained_events(), or the same
  const compiler::Journal* compiled = nullptr;       // the same
  std::filesystem::path stored_in = {};  // without events: where a trace.json of this run may lie; empty: nowhere
};

// Which operations a file is made of.
enum class Events {
  none,
  all,    // left out of sweeps, large runs, and runs that died
  known,  // left out of large runs; of sweeps and runs that died it has those that somebody knows
};

enum class Written {
  always,
  when_asked,  // and of real runs: what a run in another mode is compared with
};

struct ReportFile {
  std::string_view key;   // under [output]
  std::string_view name;  // in the run's folder
  Events events;
  void (*write)(std::ostream& out, const RunResults& results);
  Written written = Written::always;
};

// In the order in which scenarios and reports name them.
std::span<const ReportFile> report_files();

std::filesystem::path log_in(const std::filesystem::path& folder);

// Whatever a run may leave in its folder, the log first.
std::vector<std::filesystem::path> all_files_in(const std::filesystem::path& folder);

// The log, and what write_report_files() will write: for Report::files.
std::vector<std::string> files_of(const std::filesystem::path& folder, const OutputOptions& output);

// A run of very many operations is written as a trace only when the scenario says so: it takes longer to write than to
// run. Changes what will be written, and returns what to remark; empty: nothing.
std::string leave_out_large_files(OutputOptions& output, std::uint64_t operations);

// Writes what `output` wants and `results` have. Throws OutputError.
void write_report_files(const std::filesystem::path& folder, const OutputOptions& output, const RunResults& results);

}  // namespace rehearse::sim
