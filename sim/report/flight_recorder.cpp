// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/sim/flight_recorder.h>

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace rehearse::sim {
namespace {

using Json = nlohmann::ordered_json;

// Of the recorder in LibTorch 2.11; the analyzer refuses to mix versions.
constexpr const char* kVersion = "2.10";

// Keyed by name, because that is what the analyzer looks an entry's process_group up by.
Json groups_with(const comm::EventLog& events, int rank) {
  Json groups = Json::object();
  for (const auto& group : events.groups()) {
    if (std::find(group.ranks.begin(), group.ranks.end(), rank) == group.ranks.end()) continue;
    groups[group.name] = {{"name", group.name},
                          {"desc", group.description},
                          // A text of a Python list: so does the recorder.
                          {"ranks", fmt::format("[{}]", fmt::join(group.ranks, ", "))}};
  }
  return groups;
}

Json frames_of(const exec::CallSite& where) {
  Json frames = Json::array();
  for (const auto& frame : where.frames()) {
    frames.push_back({{"name", frame.function}, {"filename", frame.file}, {"line", frame.line}});
  }
  return frames;
}

Json entry_of(const comm::EventLog& events, const comm::Event& event) {
  const auto record = events.flight_record(event);
  return {{"frames", frames_of(events.call_site(event))},
          {"record_id", record.record_id},
          {"pg_id", record.pg_id},
          {"process_group", {record.process_group_name, record.process_group_desc}},
          {"collective_seq_id", record.collective_seq_id},
          {"p2p_seq_id", record.p2p_seq_id},
          {"op_id", record.op_id},
          {"profiling_name", record.profiling_name},
          {"time_created_ns", record.time_created_ns},
          {"time_discovered_started_ns", record.time_discovered_started_ns},
          {"time_discovered_completed_ns", record.time_discovered_completed_ns},
          {"duration_ms", record.duration_ms},
          {"input_sizes", record.input_sizes},
          {"input_dtypes", record.input_dtypes},
          {"output_sizes", record.output_sizes},
          {"output_dtypes", record.output_dtypes},
          {"state", record.state},
          {"retired", record.retired},
          {"timeout_ms", record.timeout_ms},
          {"is_p2p", record.is_p2p}};
}

}  // namespace

std::string flight_recorder_json(const comm::EventLog& events, int rank) {
  Json entries = Json::array();
  for (const auto& event : events.of_rank(rank)) entries.push_back(entry_of(events, event));
  const Json dump{{"version", kVersion},
                  {"rank", rank},
                  {"pg_config", groups_with(events, rank)},
                  {"entries", std::move(entries)}};
  return dump.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace rehearse::sim
