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

// The files that a run leaves in its folder: the report in several forms, and the run log. One table lists the forms.
// It serves to write the files, to delete old ones, and to read and print [output]. To add a form, add its writer and a
// row in run_files.cpp.
namespace rehearse::sim {

struct RunResults {
  const Report& report;
  const comm::EventLog* events = nullptr;            // null: lost with the process that ran
  const std::vector<RankResult>* results = nullptr;  // null: lost, too
  const comm::EventLog* explained = nullptr;         // World::explained_events(); null: lost, too
  const compiler::Journal* compiled = nullptr;       // null: lost, too
  std::filesystem::path stored_in = {};  // without events: a folder that may hold a trace.json of this run; empty: none
};

// The operations that a file needs.
enum class Events {
  none,
  all,    // sweeps, runs that died, and large runs (see leave_out_large_files()) do not write the file
  known,  // as `all`, but sweeps and runs that died write the file, with the operations that are known
};

enum class Written {
  always,
  when_asked,  // if the scenario asks for it; by default also in real runs and in `validate`, to compare modes
};

struct ReportFile {
  std::string_view key;   // in [output]
  std::string_view name;  // the file's name in the run's folder
  Events events;
  void (*write)(std::ostream& out, const RunResults& results);
  Written written = Written::always;
};

// In the order in which scenarios and reports name them.
std::span<const ReportFile> report_files();

std::filesystem::path log_in(const std::filesystem::path& folder);

// All files that a run may leave in its folder, the log first.
std::vector<std::filesystem::path> all_files_in(const std::filesystem::path& folder);

// For Report::files: the log, and the files that `output` wants.
std::vector<std::string> files_of(const std::filesystem::path& folder, const OutputOptions& output);

// A run of more than 50,000 operations gets no file that shows operations (trace, page, ...) unless the scenario names
// the file, because writing it takes longer than the run. Changes `output`, and returns the text of a remark; empty:
// nothing changed.
std::string leave_out_large_files(OutputOptions& output, std::uint64_t operations);

// Writes the files that `output` wants, as far as `results` has their data. Throws OutputError.
void write_report_files(const std::filesystem::path& folder, const OutputOptions& output, const RunResults& results);

}  // namespace rehearse::sim
