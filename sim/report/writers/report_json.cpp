// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rehearse/sim/report_writers.h>

#include "report/writers/culprits.h"
#include "report/writers/json_reader.h"
#include "report/writers/known_facts.h"
#include "report/writers/rank_groups.h"
#include "report/writers/report_json.h"

namespace rehearse::sim {
namespace {

using Reader = JsonReader;

constexpr int kReportFormatVersion = 2;
constexpr std::string_view kWhat = "report";
constexpr std::size_t kRanksListed = 64;  // longer lists of ranks in lines and causes are written as runs
constexpr int kNoRank = -1;               // for a fault that hit no rank's call

std::int64_t nanoseconds(VirtualTime time) { return time.time_since_epoch().count(); }
std::string hexadecimal(std::uint64_t number) { return fmt::format("{:#x}", number); }

void add_ranks(Json& json, const std::string& key, const std::vector<int>& ranks) {
  if (ranks.size() > kRanksListed) {
    json[key + "_runs"] = rank_runs(ranks);
  } else {
    json[key] = ranks;
  }
}

std::vector<int> ranks_in(const Reader& reader, const std::string& key) {
  const auto runs = key + "_runs";
  return reader.has(runs.c_str()) ? reader.get_rank_runs(runs.c_str()) : reader.get_ranks(key.c_str());
}

Json json_of(const RankLine& line) {
  Json json{{"rank", line.rank}, {"state", to_string(line.state)}};
  if (line.at != RankLine::kNotKnown) json["time_ns"] = nanoseconds(line.at);
  json["doing"] = line.doing;
  json["last"] = line.last;
  put_place(json, "", line.where);
  if (!line.last_where.empty()) put_place(json, "last_", line.last_where);
  add_ranks(json, "waits_for", line.waits_for);
  if (!line.gave_up_on.empty()) add_ranks(json, "gave_up_on", line.gave_up_on);
  if (!line.lost.empty()) add_ranks(json, "lost", line.lost);
  return json;
}

Json json_of(const Parting::Side& side) {
  Json json;
  add_ranks(json, "ranks", side.ranks);
  put_place(json, "", side.where);
  if (!side.branch.empty()) json["branch"] = side.branch, json["branch_line"] = side.branch_line;
  return json;
}

Json json_of(const Traceback& traceback) {
  Json json, lines = Json::array();
  for (const auto& [where, source] : traceback.lines) {
    put_place(json, "", where);
    json["source"] = source;
    lines.push_back(std::exchange(json, {}));
  }
  add_ranks(json, "ranks", traceback.ranks);
  json["lines"] = std::move(lines);
  return json;
}

Json json_of(const Cause& cause) {
  Json json{{"kind", to_string(cause.kind)}};
  add_ranks(json, "ranks", cause.ranks);
  if (!cause.call.empty()) json["call"] = cause.call;
  if (!cause.where.empty()) put_place(json, "", cause.where);
  if (!cause.waiting.empty()) add_ranks(json, "waiting", cause.waiting);
  return json;
}

Json json_of(const Difference::Side& side) {
  Json json{{"ranks", side.ranks}, {"fingerprint", side.fingerprint}};
  put_place(json, "", side.where);
  return json;
}

// Stands for the number of a call if nobody knows that number.
constexpr std::uint64_t kNoNumber = 0;

Json json_of(const Difference& difference) {
  Json others = Json::array();
  for (const auto& side : difference.others) others.push_back(json_of(side));
  Json fields = Json::array();
  for (const auto& field : difference.fields) {
    Json row = {{"name", field.name}, {"first", field.first}, {"second", field.second}};
    if (!field.others.empty()) row["others"] = field.others;
    fields.push_back(std::move(row));
  }
  Json json{{"process_group_name", difference.group}};
  if (difference.sequence != kNoNumber) json["seq_id"] = difference.sequence;
  json["first"] = json_of(difference.first);
  json["second"] = json_of(difference.second);
  json["others"] = std::move(others);
  json["fields"] = std::move(fields);
  return json;
}

Json json_of(const FaultLine::Firing& firing) {
  Json json = {{"rank", firing.rank}, {"call", firing.call}, {"time_ns", nanoseconds(firing.at)}};
  if (firing.began_again) json["began_again_ns"] = nanoseconds(*firing.began_again);
  return json;
}

Json json_of(const Place& place) {
  Json json;
  put_place(json, "", place);
  return json;
}

Json json_of(const FaultLine& line) {
  Json fired = Json::array();
  for (const auto& firing : line.fired) fired.push_back(json_of(firing));
  return {{"fault", line.fault},
          {"optional", line.optional},
          {"times", line.times},
          {"fired", std::move(fired)},
          {"why_not", line.why_not}};
}

Json json_of(const StateFinding& finding) {
  Json json{{"headline", finding.headline}, {"ranks", finding.ranks}, {"details", finding.details}};
  if (!finding.where.empty()) put_place(json, "", finding.where);
  return json;
}

Json json_of(const CallPlaces& call) {
  Json sides = Json::array();
  for (const auto& side : call.sides) {
    Json json{{"ranks", side.ranks}};
    put_place(json, "", side.where);
    sides.push_back(std::move(json));
  }
  return {{"process_group_name", call.group}, {"seq_id", call.sequence}, {"sides", std::move(sides)}};
}

Json json_of(const CallCounts& line) {
  Json sides = Json::array();
  for (const auto& side : line.sides) sides.push_back({{"times", side.times}, {"ranks", side.ranks}});
  Json json{{"process_group_name", line.group}};
  put_place(json, "", line.where);
  json["sides"] = std::move(sides);
  return json;
}

Json json_of(const DumpFacts::Stack& stack) {
  return {{"ranks", stack.ranks}, {"call", stack.call}, {"frames", stack.frames}, {"own_frames", stack.own}};
}

template <class Items>
Json list_of(const Items& items) {
  Json list = Json::array();
  for (const auto& item : items) list.push_back(json_of(item));
  return list;
}

Json json_of(const DumpFacts& dumps) {
  return {{"format", dumps.format},
          {"ranks", dumps.ranks},
          {"without_dump", dumps.without_dump},
          {"culprits", dumps.culprits},
          {"stacks", list_of(dumps.stacks)}};
}

RankLine rank_line_of(const Reader& reader) {
  RankLine line;
  line.rank = reader.get_rank("rank");
  line.state = reader.get_named("state", rank_outcome_from_string, "state of a rank");
  line.at = reader.has("time_ns") ? reader.get_time("time_ns") : RankLine::kNotKnown;
  line.doing = reader.get<std::string>("doing");
  line.last = reader.get<std::string>("last");
  line.where = place_in(reader, "");
  if (reader.has("last_where")) line.last_where = place_in(reader, "last_");
  line.waits_for = ranks_in(reader, "waits_for");
  if (reader.has("gave_up_on") || reader.has("gave_up_on_runs")) line.gave_up_on = ranks_in(reader, "gave_up_on");
  if (reader.has("lost") || reader.has("lost_runs")) line.lost = ranks_in(reader, "lost");
  return line;
}

Cause cause_of(const Reader& reader) {
  Cause cause{reader.get_named("kind", cause_kind_from_string, "kind of a cause"), ranks_in(reader, "ranks"),
              reader.get_if_there<std::string>("call")};
  if (reader.has("where")) cause.where = place_in(reader, "");
  if (reader.has("waiting") || reader.has("waiting_runs")) cause.waiting = ranks_in(reader, "waiting");
  return cause;
}

FaultLine::Firing firing_of(const Reader& reader) {
  FaultLine::Firing firing{kNoRank, reader.get<std::string>("call"), reader.get_time("time_ns")};
  if (reader.get<int>("rank") != kNoRank) firing.rank = reader.get_rank("rank");
  if (reader.has("began_again_ns")) firing.began_again = reader.get_time("began_again_ns");
  return firing;
}

FaultLine fault_line_of(const Reader& reader) {
  FaultLine line;
  line.fault = reader.get<std::string>("fault");
  line.optional = reader.get<bool>("optional");
  line.times = reader.get<std::uint64_t>("times");
  line.fired = reader.get_list("fired", firing_of);
  if (line.times > 0 && line.fired.empty())
    reader.fail_at("fired", fmt::format("is empty, and the fault fired {} times", line.times));
  line.why_not = reader.get<std::string>("why_not");
  return line;
}

StateFinding finding_of(const Reader& reader) {
  return {reader.get<std::string>("headline"), reader.get_ranks("ranks"),
          reader.get<std::vector<std::string>>("details"), reader.has("where") ? place_in(reader, "") : Place()};
}

Difference::Side side_of(const Reader& reader) {
  return {reader.get_ranks("ranks"), reader.get<std::string>("fingerprint"), place_in(reader, "")};
}

Difference::Field field_of(const Reader& reader) {
  Difference::Field field{reader.get<std::string>("name"), reader.get<std::string>("first"),
                          reader.get<std::string>("second")};
  if (reader.has("others")) field.others = reader.get<std::vector<std::string>>("others");
  return field;
}

Difference difference_of(const Reader& reader) {
  Difference difference;
  difference.group = reader.get<std::string>("process_group_name");
  difference.sequence = reader.get_if_there<std::uint64_t>("seq_id");
  difference.first = side_of(reader.child("first"));
  difference.second = side_of(reader.child("second"));
  difference.others = reader.get_list("others", side_of);
  difference.fields = reader.get_list("fields", field_of);
  return difference;
}

CallPlaces::Side place_side_of(const Reader& reader) { return {reader.get_ranks("ranks"), place_in(reader, "")}; }

CallPlaces call_places_of(const Reader& reader) {
  return {reader.get<std::string>("process_group_name"), reader.get<std::uint64_t>("seq_id"),
          reader.get_list("sides", place_side_of)};
}

CallCounts::Side count_of(const Reader& reader) {
  return {reader.get<std::uint64_t>("times"), reader.get_ranks("ranks")};
}

CallCounts call_counts_of(const Reader& reader) {
  return {reader.get<std::string>("process_group_name"), place_in(reader, ""), reader.get_list("sides", count_of)};
}

Parting::Side parting_side_of(const Reader& reader) {
  return {ranks_in(reader, "ranks"), place_in(reader, ""), reader.get_if_there<std::string>("branch"),
          reader.get_if_there<int>("branch_line")};
}

Traceback traceback_of(const Reader& reader) {
  using Line = Traceback::Line;
  const auto line_of = [](const Reader& line) { return Line{place_in(line, ""), line.get<std::string>("source")}; };
  return {ranks_in(reader, "ranks"), reader.get_list("lines", line_of)};
}

DumpFacts::Stack stack_of(const Reader& reader) {
  return {reader.get_ranks("ranks"), reader.get<std::string>("call"), reader.get<std::vector<std::string>>("frames"),
          reader.get<std::vector<std::string>>("own_frames")};
}

DumpFacts dump_facts_of(const Reader& reader) {
  return {reader.get<std::string>("format"), reader.get_ranks("ranks"), reader.get_ranks("without_dump"),
          reader.get_ranks("culprits"), reader.get_list("stacks", stack_of)};
}

// A report has no keys for values that nobody measured. Reports of older versions have zeros there.
void read_measurements(const Reader& reader, Report& report) {
  if (reader.has("seed")) report.seed = reader.get_hexadecimal("seed");
  report.schedule = reader.get_if_there<std::string>(reader.has("schedule") ? "schedule" : "mode");
  if (reader.has("identity")) report.identity = reader.get_hexadecimal("identity");
  report.decisions = reader.get_if_there<std::uint64_t>("decisions");
  report.switches = reader.get_if_there<std::uint64_t>("switches");
  report.operations = reader.get_if_there<std::uint64_t>("operations");
  if (reader.has("end_time_ns")) report.end_time = reader.get_time("end_time_ns");
  if (reader.has("stuck_since_ns")) report.stuck_since = reader.get_time("stuck_since_ns");
  const auto may_be_missing = unmeasured_keys(report);
  for (const char* key : {"seed", "schedule", "identity", "decisions", "switches", "operations", "end_time_ns"}) {
    const bool may_be = std::ranges::find(may_be_missing, key) != may_be_missing.end();
    if (!reader.has(key) && !may_be) reader.fail_at(key, "is missing");
  }
}

Json head_of(const Report& report) {
  const auto left_out = unmeasured_keys(report);
  Json json = Json::object();
  const auto add = [&](std::string_view key, Json value) {
    if (std::ranges::find(left_out, key) == left_out.end()) json[key] = std::move(value);
  };
  add("rehearse_report", kReportFormatVersion);
  add("verdict", to_string(report.verdict));
  add("exit_code", exit_code(report.verdict));
  add("headline", report.headline);
  add("program", report.program);
  add("ranks", report.ranks);
  add("seed", hexadecimal(report.seed));
  add("schedule", report.schedule);
  add("version", report.version);
  add("identity", hexadecimal(report.identity));
  add("decisions", report.decisions);
  add("switches", report.switches);
  add("operations", report.operations);
  add("end_time_ns", nanoseconds(report.end_time));
  if (report.stuck_since) add("stuck_since_ns", nanoseconds(*report.stuck_since));
  return json;
}

}  // namespace

Json report_as_json(const Report& report) {
  Json json = head_of(report);
  add_ranks(json, "culprits", culprits_of(report));
  json["causes"] = list_of(report.causes);
  json["rank_lines"] = list_of(report.rank_lines);
  json["differences"] = list_of(report.differences);
  json["call_places"] = list_of(report.call_places);
  json["call_counts"] = list_of(report.call_counts);
  json["wait_cycle"] = report.wait_cycle;
  json["last_events"] = report.last_events;
  json["remarks"] = report.remarks;
  if (!report.places.empty()) json["places"] = list_of(report.places);
  json["checks"] = report.checks;
  json["replay"] = report.replay;
  json["files"] = report.files;
  json["hint"] = report.hint;
  if (is_real(report)) json["mode"] = "real";
  if (!report.transport.empty()) json["transport"] = report.transport;
  if (report.parting) {
    json["parting"] = {{"culprits", json_of(report.parting->culprits)}, {"others", json_of(report.parting->others)}};
  }
  if (!report.tracebacks.empty()) json["tracebacks"] = list_of(report.tracebacks);
  if (!report.findings.empty()) json["findings"] = list_of(report.findings);
  if (!report.faults.empty()) json["faults"] = list_of(report.faults);
  if (report.dumps) json["dumps"] = json_of(*report.dumps);
  return json;
}

std::string to_json(const Report& report) { return json_text(report_as_json(report), 2) + "\n"; }

Report report_from_json(std::string_view text) {
  const Json json = parsed_json(text, kWhat);
  const Reader whole(json, kWhat);
  const auto version = whole.get<int>("rehearse_report");
  if (version != kReportFormatVersion) {
    throw ReportFormatError(
        fmt::format("is a report of format {}; this rehearse reads format {}", version, kReportFormatVersion));
  }
  Report report;
  report.ranks = whole.get_in("ranks", 1, kRanksMost);
  const auto reader = whole.of_ranks(report.ranks);
  report.verdict = reader.get_named("verdict", verdict_from_string, "verdict");
  report.headline = reader.get<std::string>("headline");
  report.program = reader.get<std::string>("program");
  if (reader.has("dumps")) report.dumps = dump_facts_of(reader.child("dumps"));
  read_measurements(reader, report);
  report.transport = reader.get_if_there<std::string>("transport");
  report.version = reader.get<std::string>("version");
  report.rank_lines = reader.get_list("rank_lines", rank_line_of);
  report.differences = reader.get_list("differences", difference_of);
  report.call_places = reader.get_list("call_places", call_places_of);
  if (reader.has("call_counts")) report.call_counts = reader.get_list("call_counts", call_counts_of);
  if (reader.has("parting")) {
    const auto sides = reader.child("parting");
    report.parting = {parting_side_of(sides.child("culprits")), parting_side_of(sides.child("others"))};
  }
  if (reader.has("tracebacks")) report.tracebacks = reader.get_list("tracebacks", traceback_of);
  if (reader.has("findings")) report.findings = reader.get_list("findings", finding_of);
  if (reader.has("faults")) report.faults = reader.get_list("faults", fault_line_of);
  report.wait_cycle = reader.get<std::vector<std::string>>("wait_cycle");
  report.last_events = reader.get<std::vector<std::string>>("last_events");
  report.remarks = reader.get_if_there<std::vector<std::string>>("remarks");
  if (reader.has("places"))
    report.places = reader.get_list("places", [](const Reader& each) { return place_in(each, ""); });
  report.checks = reader.get<std::map<std::string, std::uint64_t>>("checks");
  report.replay = reader.get<std::string>("replay");
  report.files = reader.get<std::vector<std::string>>("files");
  report.hint = reader.get_if_there<std::string>("hint");
  report.causes = reader.get_list("causes", cause_of);
  return report;
}

}  // namespace rehearse::sim
