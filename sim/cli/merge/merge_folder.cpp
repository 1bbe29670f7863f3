// SPDX-License-Identifier: BSD-3-Clause
#include "cli/merge/merge_folder.h"

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <map>
#include <ostream>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <rehearse/sim/report_writers.h>
#include <rehearse_internal/sim/input_file.h>

#include "cli/death/crash_record.h"
#include "cli/death/death.h"
#include "cli/launch/launcher.h"
#include "cli/merge/merged_report.h"
#include "cli/output_folder.h"
#include "cli/terminal/exit_codes.h"
#include "record/call_list.h"
#include "record/output_file.h"
#include "record/result_list.h"
#include "report/writers/json.h"
#include "run/run_files.h"

namespace rehearse::cli {
namespace {

using sim::Json;
using std::filesystem::path;

struct MergedFiles {
  std::vector<std::string> written;
  // One sentence for each damaged file of a rank. It names the file and says what is wrong with it.
  std::vector<std::string> damages;
};

constexpr std::size_t kBytesMost = std::size_t{1} << 30;

Json& list_in(Json& json, const char* key) {
  if (!json.contains(key)) json[key] = Json::array();
  return json[key];
}

void append(Json& all, const Json& more) {
  for (const auto& each : more.items()) all.push_back(each);
}

template <class Items>
void require_of_rank(const Items& items, int rank, std::string_view what) {
  for (const auto& each : items) {
    if (each.rank == rank) continue;
    throw sim::ReportFormatError(fmt::format("is not of rank {}: it lists a {} of rank {}", rank, what, each.rank));
  }
}

// The following four functions each add one rank's file to `all`, which is null at first. They throw ReportFormatError
// and JsonError.
void add_calls(Json& all, const std::string& text, int rank) {
  require_of_rank(sim::calls_from_json(text), rank, "call");
  const auto own = sim::parse_json(text);
  if (all.is_null()) all["rehearse_calls"] = own.at("rehearse_calls");
  append(list_in(all, "calls"), own.at("calls"));
}

void add_results(Json& all, const std::string& text, int rank) {
  require_of_rank(sim::results_from_json(text), rank, "result");
  const auto own = sim::parse_json(text);
  if (all.is_null()) all["rehearse_results"] = own.at("rehearse_results");
  append(list_in(all, "results"), own.at("results"));
}

// Leaves out arrows, because an arrow leads from one rank to another, and each file describes only one of these two
// ranks.
void add_trace(Json& all, const std::string& text, int rank) {
  const auto own = sim::parse_json(text);
  auto& events = list_in(all, "traceEvents");
  for (const auto& event : own.at("traceEvents").items()) {
    const auto kind = event.at("ph").get<std::string>();
    if (event.at("pid").get<int>() == rank && kind != "s" && kind != "f") events.push_back(event);
  }
}

void add_flight_record(Json& all, const std::string& text, int rank) {
  const auto own = sim::parse_json(text);
  if (all.is_null()) all["version"] = own.at("version");
  auto& groups = list_in(all, "groups");
  std::set<std::string> known;
  for (const auto& group : groups.items()) known.insert(group.at("name").get<std::string>());
  for (const auto& group : own.at("groups").items()) {
    if (!known.contains(group.at("name").get<std::string>())) groups.push_back(group);
  }
  auto& entries = list_in(all, "entries");
  while (entries.items().size() < static_cast<std::size_t>(rank)) entries.push_back(Json::array());
  const auto& own_entries = own.at("entries").items();
  if (own_entries.size() <= static_cast<std::size_t>(rank)) throw sim::JsonError("lacks the entries of its rank");
  entries.push_back(own_entries[static_cast<std::size_t>(rank)]);
}

using Add = void (*)(Json& all, const std::string& text, int rank);
const std::map<std::string_view, Add> kMergedFiles{
    {"calls", add_calls}, {"results", add_results}, {"trace", add_trace}, {"flight_recorder", add_flight_record}};

// Returns what is wrong with the file; empty: nothing.
std::string add_file(Json& all, const path& file, int rank, Add add) {
  const auto text_of = [&] { return sim::read_input(file, "file", [](std::string_view) { return kBytesMost; }); };
  try {
    Json with = all;
    add(with, text_of(), rank);
    all = std::move(with);
    return "";
  } catch (const sim::InputError& error) {
    return error.what();  // names the file
  } catch (const sim::JsonSyntaxError& error) {
    return fmt::format("{}: not JSON, see byte {}", file.string(), error.byte);
  } catch (const sim::JsonError& error) {
    return fmt::format("{}: is damaged: {}", file.string(), error.what());
  } catch (const sim::ReportFormatError& error) {
    return fmt::format("{}: {}", file.string(), error.what());
  }
}

Json merged(const path& folder, int ranks, std::string_view name, Add add, std::vector<std::string>& damages) {
  Json all;
  std::error_code ignored;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto file = rank_folder(folder, rank) / name;
    if (!std::filesystem::exists(file, ignored)) continue;
    const auto damage = add_file(all, file, rank, add);
    if (!damage.empty()) damages.push_back(fmt::format("{}; {} is without it", damage, (folder / name).string()));
  }
  return all;
}

// Combines the ranks' files in `folder` (calls, results, trace, flight recorder). Writes each combined file there if
// `output` wants it and any rank left such a file. Leaves out damaged files. Throws OutputError.
MergedFiles merge_other_files(const path& folder, int ranks, const sim::OutputOptions& output) {
  MergedFiles files;
  for (const auto& file : sim::report_files()) {
    const auto row = kMergedFiles.find(file.key);
    if (row == kMergedFiles.end() || !output.wants(file.key)) continue;
    auto all = merged(folder, ranks, file.name, row->second, files.damages);
    if (all.is_null()) continue;
    const auto text = sim::json_text(std::move(all));
    const auto target = folder / file.name;
    sim::write_file(target, [&](std::ostream& out) { out << text << "\n"; });
    files.written.push_back(target.string());
  }
  return files;
}

constexpr std::size_t kReportBytesMost = std::size_t{256} << 20;

std::map<int, path> rank_folders_in(const path& folder) {
  std::map<int, path> folders;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (const auto rank = rank_of_folder(entry.path().filename().string())) folders.emplace(*rank, entry.path());
  }
  if (error) throw MergeError(fmt::format("{}: cannot be read: {}", folder.string(), error.message()));
  if (!folders.empty()) return folders;
  throw MergeError(fmt::format(
      "{}: has no folder rank-0, rank-1 or so: those are what the processes of a real run leave in their "
      "[output] directory, or in --output=DIR. Nor has it shard-1-of-8.json or so, as a sweep with --shard leaves",
      folder.string()));
}

// The report in a rank's folder. If both fields are empty, the folder has no report.json.
struct Found {
  std::optional<Report> report;
  std::string damage;  // what is wrong with a file that is no report
};

Found report_in(const path& folder) {
  const auto file = folder / "report.json";
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return {};
  try {
    auto report =
        sim::report_from_json(sim::read_input(file, "report", [](std::string_view) { return kReportBytesMost; }));
    if (sim::is_real(report)) return {std::move(report), ""};
  } catch (const sim::ReportFormatError& error) {
    return {std::nullopt, fmt::format("{} {}", file.string(), error.what())};
  } catch (const sim::InputError& error) {
    return {std::nullopt, error.what()};
  }
  throw MergeError(fmt::format("{}: is the report of a simulation, which has all ranks already", file.string()));
}

// A damaged report is an error, because a verdict without it could be wrong.
MergeError damaged(const std::string& damage) {
  return MergeError(damage +
                    "; bring it once more from where the rank left it, or remove it: a rank without a report counts as "
                    "CRASHED");
}

void require_same_run(const path& folder, int rank, const Report& report, int other_rank, const Report& other) {
  const auto fail = [&](std::string_view what, const auto& value, const auto& expected) {
    throw MergeError(
        fmt::format("{}: is of another run than rank {}'s: {} is {}, not {}; let each run have a folder of its own",
                    (rank_folder(folder, rank) / "report.json").string(), other_rank, what, value, expected));
  };
  if (report.program != other.program) fail("the program", report.program, other.program);
  if (report.ranks != other.ranks) fail("the number of ranks", report.ranks, other.ranks);
  if (report.seed != other.seed) fail("the seed", report.seed, other.seed);
}

// The report lists the files of its run, and their paths name the rank.
void require_of_rank(const path& folder, int rank, const Report& report) {
  if (report.files.empty()) return;
  const auto written_to = path(report.files.front()).parent_path().filename().string();
  if (const auto other = rank_of_folder(written_to); other && *other != rank) {
    throw MergeError(fmt::format("{}: is of rank {}, not {}: folders have been renamed, or copied over each other",
                                 (rank_folder(folder, rank) / "report.json").string(), *other, rank));
  }
}

std::string ending_of(const path& folder, int rank, const std::vector<ProcessEnd>& ends) {
  const auto own_folder = rank_folder(folder, rank);
  if (static_cast<std::size_t>(rank) >= ends.size()) {
    return fmt::format("nothing in {} tells how it ended", own_folder.string());
  }
  const auto& end = ends[static_cast<std::size_t>(rank)];
  if (end.stopped_by != 0 && end.killed)
    return fmt::format("its process was stopped by {}, and so was killed in the end", signal_text(end.stopped_by));
  if (end.killed) return "its process did not end when it was asked to, and was killed";
  if (end.signal != 0) return fmt::format("its process was ended by {}", signal_text(end.signal));
  const auto* const why = end.code == kExitOutput ? " (its files could not be written)" : "";
  return fmt::format("its process ended with exit code {}{}; what it said is in {}", end.code, why,
                     (own_folder / "output.txt").string());
}

// If a process died without a record, the report comes from its watching process, which saw only that the process was
// gone. `ends` says how it really ended, because the caller started the process.
void correct(Report& report, const path& folder, int rank, const std::vector<ProcessEnd>& ends) {
  if (static_cast<std::size_t>(rank) >= ends.size() || report.rank_lines.size() != 1) return;
  auto& line = report.rank_lines.front();
  const auto& end = ends[static_cast<std::size_t>(rank)];
  const bool by_the_system = end.signal == SIGKILL && !end.killed;
  if (line.doing != kWithoutAWord || by_the_system) return;
  line.doing = ending_of(folder, rank, ends);
  report.headline = line.doing;
}

}  // namespace

Report merged_report_of(const path& folder, std::optional<int> ranks, const std::vector<ProcessEnd>& ends) {
  std::map<int, Report> reports;
  std::map<int, std::string> damages;
  const auto folders = rank_folders_in(folder);
  for (const auto& [rank, own_folder] : folders) {
    auto [report, damage] = report_in(own_folder);
    if (!damage.empty() && ends.empty()) throw damaged(damage);
    if (!damage.empty()) damages.emplace(rank, damage);
    if (!report) continue;
    require_of_rank(folder, rank, *report);
    if (!reports.empty()) require_same_run(folder, rank, *report, reports.begin()->first, reports.begin()->second);
    reports.emplace(rank, std::move(*report));
  }
  if (reports.empty() && ends.empty()) {
    throw MergeError(
        fmt::format("{}: no rank has left a report.json; [output] json = false leaves none", folder.string()));
  }
  const int count = ranks ? *ranks : reports.begin()->second.ranks;
  if (const int last = folders.rbegin()->first; last >= count) {
    throw MergeError(fmt::format("{}: the run had {} ranks, 0 to {}; take away what is not its own",
                                 rank_folder(folder, last).string(), count, count - 1));
  }
  std::vector<RankReport> all(static_cast<std::size_t>(count));
  for (int rank = 0; rank < count; ++rank) {
    auto& one = all[static_cast<std::size_t>(rank)];
    const auto found = reports.find(rank);
    if (found != reports.end()) {
      one.report = std::move(found->second);
      correct(*one.report, folder, rank, ends);
    } else {
      one.ending = ending_of(folder, rank, ends);
      if (damages.contains(rank)) one.ending += "; " + damages.at(rank);
    }
  }
  return merged_report(all);
}

int leave_merged(Report report, const path& folder, const sim::OutputOptions& output, int code, Console& console) {
  std::string problem;
  try {
    const auto others = merge_other_files(folder, report.ranks, output);
    report.remarks.insert(report.remarks.end(), others.damages.begin(), others.damages.end());
    if (output.wants("report")) report.files.push_back((folder / "report.txt").string());
    if (output.wants("json")) report.files.push_back((folder / "report.json").string());
    if (output.wants("html")) report.files.push_back((folder / "report.html").string());
    report.files.insert(report.files.end(), others.written.begin(), others.written.end());
    const bool has_trace = std::ranges::find(others.written, (folder / "trace.json").string()) != others.written.end();
    sim::write_report_files(folder, output, {.report = report, .stored_in = has_trace ? folder : path()});
  } catch (const OutputError& error) {
    problem = error.what();
    report.files.clear();
  }
  return Console::code_after(problem, console.conclude(report, code));
}

}  // namespace rehearse::cli
