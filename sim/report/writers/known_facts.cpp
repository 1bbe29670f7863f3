// SPDX-License-Identifier: BSD-3-Clause
#include "report/writers/known_facts.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "report/writers/report_json.h"

namespace rehearse::sim {
namespace {

std::vector<std::string_view> unmeasured(const Report& report) {
  std::vector<std::string_view> keys;
  const auto add = [&](auto... more) { (keys.push_back(more), ...); };
  if (report.dumps) add("seed", "schedule");
  if (!is_measured(report)) add("end_time_ns");
  if (!is_measured(report) && !report.dumps) add("operations");
  if (report.identity == 0) add("identity");
  if (report.decisions == 0 && report.switches == 0) add("decisions", "switches");
  return keys;
}

}  // namespace

bool is_measured(const Report& report) {
  return !report.dumps &&
         (report.identity != 0 || report.switches != 0 || report.operations != 0 || report.end_time != kTimeZero);
}

bool is_partial(const Report& report) {
  return report.verdict == Verdict::ok && report.dumps && !report.dumps->without_dump.empty();
}

Json measured_json(const Report& report) {
  const auto left_out = unmeasured(report);
  const Json whole = report_as_json(report);
  Json measured = Json::object();
  for (const auto& [key, value] : whole.entries()) {
    if (std::find(left_out.begin(), left_out.end(), key) == left_out.end()) measured[key] = value;
  }
  return measured;
}

}  // namespace rehearse::sim
