// SPDX-License-Identifier: BSD-3-Clause
#include "cli/merge/merged_files.h"

#include <array>
#include <fstream>
#include <map>
#include <ostream>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/launch/launcher.h"
#include "record/output_file.h"
#include "run/run_files.h"

namespace rehearse::cli {
namespace {

using FileJson = nlohmann::ordered_json;
using std::filesystem::path;

FileJson& list_in(FileJson& json, const char* key) {
  if (!json.contains(key)) json[key] = FileJson::array();
  return json[key];
}

void append(FileJson& all, const FileJson& more) {
  for (const auto& each : more) all.push_back(each);
}

// Each adds one rank's file to `all`, which begins as null.
void add_calls(FileJson& all, const FileJson& own, int) {
  if (all.is_null()) all["rehearse_calls"] = own.at("rehearse_calls");
  append(list_in(all, "calls"), own.at("calls"));
}

void add_results(FileJson& all, const FileJson& own, int) {
  if (all.is_null()) all["rehearse_results"] = own.at("rehearse_results");
  append(list_in(all, "results"), own.at("results"));
}

// Arrows lead from one rank to another, of whom a file knows one.
void add_trace(FileJson& all, const FileJson& own, int rank) {
  auto& events = list_in(all, "traceEvents");
  for (const auto& event : own.at("traceEvents")) {
    const auto kind = event.value("ph", "");
    if (event.value("pid", -1) == rank && kind != "s" && kind != "f") events.push_back(event);
  }
}

void add_flight_record(FileJson& all, const FileJson& own, int rank) {
  if (all.is_null()) all["version"] = own.at("version");
  auto& groups = list_in(all, "groups");
  std::set<std::string> known;
  for (const auto& group : groups) known.insert(group.at("name").get<std::string>());
  for (const auto& group : own.at("groups")) {
    if (!known.contains(group.at("name").get<std::string>())) groups.push_back(group);
  }
  auto& entries = list_in(all, "entries");
  while (entries.size() < static_cast<std::size_t>(rank)) entries.push_back(FileJson::array());
  entries.push_back(own.at("entries").at(static_cast<std::size_t>(rank)));
}

using Add = void (*)(FileJson& all, const FileJson& own, int rank);
const std::map<std::string_view, Add> kMergedFiles{
    {"calls", add_calls}, {"results", add_results}, {"trace", add_trace}, {"flight_recorder", add_flight_record}};

FileJson merged(const path& folder, int ranks, std::string_view name, Add add) {
  FileJson all;
  for (int rank = 0; rank < ranks; ++rank) {
    std::ifstream in(rank_folder(folder, rank) / name, std::ios::binary);
    if (!in) continue;
    const auto own = FileJson::parse(in, nullptr, /*allow_exceptions=*/false);
    try {
      FileJson with = all;
      add(with, own, rank);
      all = std::move(with);
    } catch (const FileJson::exception&) {
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
    const auto all = merged(folder, ranks, file.name, row->second);
    if (all.is_null()) continue;
    const auto place = folder / file.name;
    sim::write_file(
        place, [&](std::ostream& out) { out << all.dump(-1, ' ', false, FileJson::error_handler_t::replace) << "\n"; });
    written.push_back(place.string());
  }
  return written;
}

}  // namespace rehearse::cli
