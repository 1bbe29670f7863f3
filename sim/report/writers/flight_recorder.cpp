// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/sim/flight_recorder.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "report/writers/json.h"
#include "report/writers/known_facts.h"

namespace rehearse::sim {
namespace {

// The recorder's version in LibTorch 2.11. The analyzer refuses to mix versions.
constexpr const char* kVersion = "2.10";

// `made_by`: the ranks that made this group, if other ranks passed other arguments to the same call of new_group().
// Empty: all ranks of the group made it.
struct RecordedGroup {
  comm::EventLog::Group group;
  std::optional<std::vector<int>> made_by;
};

Json group_of(const RecordedGroup& recorded, std::size_t) {
  const auto& [group, made_by] = recorded;
  Json json{{"name", group.name}, {"desc", group.description}, {"ranks", group.ranks}};
  if (made_by) json["made_by"] = *made_by;
  return json;
}

bool is_same(const comm::EventLog::Group& a, const comm::EventLog::Group& b) {
  return a.name == b.name && a.description == b.description && a.ranks == b.ranks;
}

// In a real job, each rank's dump has the groups that the rank has made and is a member of. Groups that only some ranks
// made come after the groups of the log, so that a call's pg_id remains the index of its group.
std::vector<RecordedGroup> groups_of(const comm::EventLog& events) {
  std::vector<RecordedGroup> groups;
  for (const auto& group : events.groups()) groups.push_back({group, std::nullopt});
  const auto of_log = static_cast<std::ptrdiff_t>(groups.size());
  for (const auto& [pg_id, rank, passed] : events.other_creations()) {
    auto& first = groups[pg_id];
    if (!first.made_by) first.made_by = first.group.ranks;
    std::erase(*first.made_by, rank);
    if (std::ranges::find(passed.ranks, rank) == passed.ranks.end()) continue;
    const auto same = std::find_if(groups.begin() + of_log, groups.end(),
                                   [&](const RecordedGroup& known) { return is_same(known.group, passed); });
    if (same != groups.end()) {
      same->made_by->insert(std::upper_bound(same->made_by->begin(), same->made_by->end(), rank), rank);
    } else {
      groups.push_back({passed, std::vector<int>{rank}});
    }
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

// Each process of a real job numbers its own records from 0, and the analyzer matches ranks by these numbers.
Json entry_of(const comm::EventLog& events, const comm::Event& event, std::size_t number_on_rank) {
  const auto record = events.flight_record(event);
  return {{"frames", frames_of(events.call_site(event))},
          {"record_id", number_on_rank},
          {"pg_id", record.pg_id},
          {"process_group", Json::array({record.process_group_name, record.process_group_desc})},
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

// Writes one item after the other, each on a line, so that the text of the whole list is never in memory.
template <class Items, class Make>
void write_list(std::ostream& out, const Items& items, const Make& make) {
  const char* before = "\n";
  std::size_t number = 0;
  for (const auto& item : items) {
    out << before << json_text(make(item, number++));
    before = ",\n";
  }
}

}  // namespace

void write_flight_recorder(std::ostream& out, const comm::EventLog& events, const Report& report) {
  std::vector<std::vector<comm::Event>> of_ranks(static_cast<std::size_t>(report.ranks));
  for (const auto& event : events.kept()) of_ranks[static_cast<std::size_t>(event.rank)].push_back(event);
  out << "{\"version\":\"" << kVersion << "\",\n\"run\":" << json_text(run_facts(report)) << ",\n\"groups\":[";
  write_list(out, groups_of(events), group_of);
  out << "\n],\n\"entries\":[";
  const char* before = "";
  for (const auto& of_rank : of_ranks) {
    out << before << "[";
    write_list(out, of_rank,
               [&](const comm::Event& event, std::size_t number) { return entry_of(events, event, number); });
    out << "]";
    before = ",\n";
  }
  out << "]}\n";
}

}  // namespace rehearse::sim
