// SPDX-License-Identifier: BSD-3-Clause
#include "run/run_files.h"

#include <algorithm>
#include <array>
#include <ostream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse/sim/report_writers.h>
#include <rehearse_internal/sim/chrome_trace.h>
#include <rehearse_internal/sim/flight_recorder.h>

#include "record/call_list.h"
#include "record/output_file.h"
#include "record/result_list.h"
#include "run/run_page.h"

namespace rehearse::sim {
namespace {

constexpr std::array kReportFiles{
    ReportFile{"report", "report.txt", Events::none,
               [](std::ostream& out, const RunResults& results) { out << to_text(results.report); }},
    ReportFile{"json", "report.json", Events::none,
               [](std::ostream& out, const RunResults& results) { out << to_json(results.report); }},
    ReportFile{"html", "report.html", Events::known, write_run_page},
    ReportFile{
        "trace", "trace.json", Events::all,
        [](std::ostream& out, const RunResults& results) { write_chrome_trace(out, *results.events, results.report); }},
    ReportFile{"flight_recorder", "flight_recorder.json", Events::all,
               [](std::ostream& out, const RunResults& results) {
                 write_flight_recorder(out, *results.events, results.report);
               }},
    ReportFile{"calls", "calls.json", Events::all,
               [](std::ostream& out, const RunResults& results) { write_calls(out, listed_calls(*results.events)); },
               Written::when_asked},
    ReportFile{
        "results", "results.json", Events::none,
        [](std::ostream& out, const RunResults& results) { write_results(out, listed_results(*results.results)); },
        Written::when_asked},
};

// For example "a, b and c".
std::string listed(const std::vector<std::string>& names) {
  const auto before = names.size() - 1;
  if (before == 0) return names.front();
  return fmt::format("{} and {}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(before), ", "),
                     names.back());
}

}  // namespace

OutputOptions OutputOptions::only(std::string_view file) {
  OutputOptions output;
  for (const auto& each : kReportFiles) output.files.emplace(each.key, each.key == file);
  return output;
}

bool OutputOptions::wants(std::string_view file) const {
  if (const auto said = files.find(file); said != files.end()) return said->second;
  const auto row = std::ranges::find_if(kReportFiles, [&](const auto& each) { return each.key == file; });
  return row == kReportFiles.end() || row->written == Written::always;
}

void OutputOptions::want_what_modes_share() {
  for (const auto& file : kReportFiles) {
    if (file.written == Written::when_asked) files.emplace(std::string(file.key), true);
  }
}

bool OutputOptions::needs_all_events() const {
  return all_events && std::ranges::any_of(kReportFiles, [&](const auto& file) {
           return file.events != Events::none && wants(file.key);
         });
}

void OutputOptions::leave_events_out() {
  all_events = false;
  for (const auto& file : kReportFiles) {
    if (file.events == Events::all) files.insert_or_assign(std::string(file.key), false);
  }
}

std::span<const ReportFile> report_files() { return kReportFiles; }

std::filesystem::path log_in(const std::filesystem::path& folder) { return folder / "run.rlog"; }

std::vector<std::filesystem::path> all_files_in(const std::filesystem::path& folder) {
  std::vector files = {log_in(folder)};
  for (const auto& file : kReportFiles) files.push_back(folder / file.name);
  return files;
}

std::vector<std::string> files_of(const std::filesystem::path& folder, const OutputOptions& output) {
  std::vector files = {log_in(folder).string()};
  for (const auto& file : kReportFiles) {
    if (output.wants(file.key)) files.push_back((folder / file.name).string());
  }
  return files;
}

std::string leave_out_large_files(OutputOptions& output, std::uint64_t operations) {
  constexpr std::uint64_t kOperationsMost = 50'000;
  if (operations <= kOperationsMost) return "";
  std::vector<std::string> names, keys;
  for (const auto& file : kReportFiles) {
    if (file.events == Events::none || output.names(file.key) || !output.wants(file.key)) continue;
    output.files.emplace(file.key, false);
    names.emplace_back(file.name);
    keys.push_back(fmt::format("{} = true", file.key));
  }
  if (names.empty()) return "";
  return fmt::format("{} left out, of a run of more than {} operations; {} under [output] would have written {}",
                     listed(names), kOperationsMost, listed(keys), names.size() == 1 ? "it" : "them");
}

void write_report_files(const std::filesystem::path& folder, const OutputOptions& output, const RunResults& results) {
  for (const auto& file : kReportFiles) {
    if (!output.wants(file.key) || (file.events == Events::all && results.events == nullptr)) continue;
    if (file.written == Written::when_asked && results.results == nullptr) continue;
    write_file(folder / file.name, [&](std::ostream& out) { file.write(out, results); });
  }
}

}  // namespace rehearse::sim
