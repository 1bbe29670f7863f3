// SPDX-License-Identifier: BSD-3-Clause
#include "cli/merge/merged_files.h"

#include <array>
#include <fstream>
#include <map>
#include <ostream>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "cli/launch/launcher.h"
#include "record/output_file.h"
#include "report/writers/json.h"
#include "run/run_files.h"

namespace rehearse::cli {
namespace {

using sim::Json;
using std::filesystem::path;

Json& list_in(Json& json, const char* key) {
  if (!json.contains(key)) json[key] = Json::array();
  return json[key];
}

void append(Json& all, const Json& more) {
  for (const auto& each : more.items()) all.push_back(each);
}

// Each adds one rank's file to `all`, which begins as null.
void add_calls(Json& all, const Json& own, int) {
  if (all.is_null()) all["rehearse_calls"] = own.at("rehearse_calls");
  append(list_in(all, "calls"), own.at("calls"));
}

void add_results(Json& all, const Json& own, int) {
  if (all.is_null()) all["rehearse_results"] = own.at("rehearse_results");
  append(list_in(all, "results"), own.at("results"));
}

// Arrows lead from one rank to another, of whom a file knows one.
void add_trace(Json& all, const Json& own, int rank) {
  auto& events = list_in(all, "traceEvents");
  for (const auto& event : own.at("traceEvents").items()) {
    const auto kind = event.at("ph").get<std::string>();
    if (event.at("pid").get<int>() == rank && kind != "s" && kind != "f") events.push_back(event);
  }
}

void add_flight_record(Json& all, const Json& own, int rank) {
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

using Add = void (*)(Json& all, const Json& own, int rank);
const std::map<std::string_view, Add> kMergedFiles{
    {"calls", add_calls}, {"results", add_results}, {"trace", add_trace}, {"flight_recorder", add_flight_record}};

Json merged(const path& folder, int ranks, std::string_view name, Add add) {
  Json all;
  for (int rank = 0; rank < ranks; ++rank) {
    std::ifstream in(rank_folder(folder, rank) / name, std::ios::binary);
    if (!in) continue;
    std::ostringstream text;
    text << in.rdbuf();
    try {
      Json with = all;
      add(with, sim::parse_json(text.view()), rank);
      all = std::move(with);
    } catch (const sim::JsonError&) {
      continue;  // cut off, where its process was killed
    }
  }
  return all;
}

}  // namespace

std::vector<std::string> merge_other_files(const path& folder, int ranks, const sim::OutputOptions& output) {
  std::vector<std::string> written;
  for (const auto& file : sim::report_files()) {
    const auto row = kMergedFiles.find(file.key);
    if (row == kMergedFiles.end() || !output.wants(file.key)) continue;
    auto all = merged(folder, ranks, file.name, row->second);
    if (all.is_null()) continue;
    const auto text = sim::json_text(std::move(all));
    const auto place = folder / file.name;
    sim::write_file(place, [&](std::ostream& out) { out << text << "\n"; });
    written.push_back(place.string());
  }
  return written;
}

}  // namespace rehearse::cli
