// SPDX-License-Identifier: BSD-3-Clause
#include "cli/merge/merged_files.h"

#include <cstddef>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <rehearse/sim/report_writers.h>
#include <rehearse_internal/sim/input_file.h>

#include "cli/launch/launcher.h"
#include "record/call_list.h"
#include "record/output_file.h"
#include "record/result_list.h"
#include "report/writers/json.h"
#include "run/run_files.h"

namespace rehearse::cli {
namespace {

using sim::Json;
using std::filesystem::path;

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

}  // namespace

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

}  // namespace rehearse::cli
