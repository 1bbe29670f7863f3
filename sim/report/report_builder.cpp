// SPDX-License-Identifier: BSD-3-Clause
#include "report_builder.h"

#include <utility>

#include "report/call_places.h"
#include "report/event_lines.h"
#include "report/rank_ends.h"
#include "report/verdict_story.h"

namespace rehearse::sim {
namespace {

Difference::Side side_of(const comm::Mismatch::Side& side) {
  return {side.alike, side.fingerprint, side.where.describe()};
}

Difference difference_of(const comm::Mismatch& mismatch) {
  Difference difference;
  difference.group = mismatch.group;
  difference.sequence = mismatch.sequence;
  difference.first = side_of(mismatch.first);
  difference.second = side_of(mismatch.second);
  for (const auto& side : mismatch.others) difference.others.push_back(side_of(side));
  for (const auto& field : mismatch.fields) difference.fields.push_back({field.name, field.first, field.second});
  return difference;
}

void add_facts(const WorldOptions& options, const RunRecord& record, Report& report) {
  const exec::RunOutcome& outcome = record.outcome;
  report.ranks = options.ranks;
  report.seed = options.seed;
  report.schedule = schedule_text(options);
  report.version = REHEARSE_VERSION;
  report.identity = record.decisions.hash() ^ (record.events.hash() * 0x9E3779B97F4A7C15ull);
  report.decisions = record.decisions.decisions().size();
  report.switches = outcome.switches;
  report.operations = record.events.size();
  report.end_time = outcome.end_time;
  report.checks = record.checks;
}

void add_last_operations(const comm::EventLog& events, Report& report) {
  for (RankLine& line : report.rank_lines) {
    if (const auto* const last = events.last_completed(line.rank)) line.last = events.title(*last);
  }
  report.last_events = last_event_lines(events);
}

}  // namespace

Report build_report(const WorldOptions& options, const RunRecord& record) {
  Report report;
  add_facts(options, record, report);
  const RankEnds ends(options.ranks, record);
  auto story = tell_verdict(options, record, ends);
  report.verdict = story.verdict;
  report.headline = std::move(story.headline);
  report.wait_cycle = std::move(story.wait_cycle);
  report.rank_lines = ends.lines();
  for (const auto& mismatch : record.mismatches) report.differences.push_back(difference_of(mismatch));
  if (report.verdict != Verdict::ok) add_last_operations(record.events, report);
  report.call_places = calls_from_different_places(record, report.verdict);
  return report;
}

}  // namespace rehearse::sim
