// SPDX-License-Identifier: BSD-3-Clause
#include "report/writers/known_facts.h"

#include <fmt/format.h>

#include <rehearse/sim/report_writers.h>

#include "report/writers/json_reader.h"

namespace rehearse::sim {

bool is_measured(const Report& report) {
  return !report.dumps &&
         (report.identity != 0 || report.switches != 0 || report.operations != 0 || report.end_time != kTimeZero);
}

bool is_partial(const Report& report) {
  return report.verdict == Verdict::ok && report.dumps && !report.dumps->without_dump.empty();
}

// Only a simulation that ended has an identity, and in its report zeros are facts. In other reports, a zero means that
// nobody measured the value. Exception: dumps, and real runs with a time, have counted their operations.
std::vector<std::string_view> unmeasured_keys(const Report& report) {
  std::vector<std::string_view> keys;
  const auto add = [&](auto... more) { (keys.push_back(more), ...); };
  if (report.dumps) add("seed", "schedule");
  if (report.identity != 0) return keys;
  add("identity");
  if (report.decisions == 0 && report.switches == 0) add("decisions", "switches");
  const bool counts_calls = report.dumps || (is_real(report) && report.end_time != kTimeZero);
  if (report.operations == 0 && !counts_calls) add("operations");
  if (report.end_time == kTimeZero || report.dumps) add("end_time_ns");
  return keys;
}

Json run_facts(const Report& report) {
  return {{"program", report.program},
          {"seed", fmt::format("{:#x}", report.seed)},
          {"transport", report.transport.empty() ? "simulation" : report.transport},
          {"verdict", to_string(report.verdict)},
          {"identity", fmt::format("{:#x}", report.identity)}};
}

void put_place(Json& json, const std::string& prefix, const Place& place) {
  json[prefix + "where"] = place.text;
  if (place.file.empty()) return;
  json[prefix + "place"] = {{"file", place.file}, {"line", place.line}, {"function", place.function}};
}

Place place_in(const JsonReader& reader, const std::string& prefix) {
  Place place(reader.get<std::string>((prefix + "where").c_str()));
  const auto key = prefix + "place";
  if (!reader.has(key.c_str())) return place;
  const auto fields = reader.child(key.c_str());
  place.file = fields.get<std::string>("file");
  place.line = fields.get<int>("line");
  place.function = fields.get<std::string>("function");
  return place;
}

}  // namespace rehearse::sim
