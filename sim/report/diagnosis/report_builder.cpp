// SPDX-License-Identifier: BSD-3-Clause
#include "report/diagnosis/report_builder.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "record/begun_report.h"
#include "report/calls/call_drift.h"
#include "report/calls/call_places.h"
#include "report/calls/differences.h"
#include "report/calls/event_lines.h"
#include "report/diagnosis/diagnosis.h"
#include "report/diagnosis/remarks.h"
#include "report/ranks/parting.h"
#include "report/ranks/places.h"
#include "report/ranks/rank_failure_text.h"
#include "report/ranks/rank_outcomes.h"

namespace rehearse::sim {
namespace {

void add_figures(const WorldOptions& options, const RunRecord& record, Report& report) {
  // Two real runs are never the same.
  report.identity = options.mode == Mode::real ? 0 : record.identity();
  report.transport = record.transport;
  report.decisions = record.decisions.decisions().size();
  report.switches = record.outcome.switches;
  report.operations = record.events.size();
  report.end_time = record.outcome.end_time;
  report.checks = record.checks;
}

void add_last_operations(const RunRecord& record, const Places& places, Report& report) {
  const comm::EventLog& events = record.events;
  for (RankLine& line : report.rank_lines) {
    const auto* const completed = events.last_completed(line.rank);
    if (completed != nullptr) line.last = events.title(*completed);
    const auto* const last = completed != nullptr ? completed : events.last(line.rank);
    if (last != nullptr && line.where.empty()) line.last_where = places.place(events.call_site(*last));
  }
  report.last_events = last_event_lines(record, report.verdict, places);
}

// No second run can show for whom a rank of a real run waited before its timeout, so the rank's line names those ranks.
void add_waits_given_up(const RunRecord& record, Report& report) {
  for (const auto& failure : record.outcome.failures) {
    auto& line = report.rank_lines[static_cast<std::size_t>(failure.rank)];
    if (failure.gave_up && is_timeout(failure) && line.waits_for.empty()) line.waits_for = failure.gave_up->waits_for;
  }
}

// Tells the reader how to make source lines available.
std::string hint_of(const RunRecord& record) {
  constexpr std::size_t kLookedAt = 16;  // failures, and fibers: all code is compiled in the same way, so a few suffice
  const auto& outcome = record.outcome;
  std::string hint;
  for (std::size_t i = 0; hint.empty() && i < std::min(outcome.failures.size(), kLookedAt); ++i)
    hint = outcome.failures[i].thrown_at.how_to_see_lines();
  for (std::size_t i = 0; hint.empty() && i < std::min(outcome.blocked.size(), kLookedAt); ++i)
    hint = outcome.blocked[i].where.how_to_see_lines();
  return hint;
}

// If a group's calls are all equal, nobody can tell which of them a rank left out. Labels would help.
std::string hint_at_labels(const Report& report, const RunRecord& record) {
  const auto is_of_counts = [&](const comm::PendingOperation& call) {
    const auto* const event = record.events.find(call.record_id);
    const bool unlabelled = event != nullptr && record.events.signature(*event).label.empty();
    return unlabelled && !call.waits_for.empty() && std::ranges::all_of(call.waits_for, [&](int rank) {
             return report.rank_lines[static_cast<std::size_t>(rank)].state == RankOutcome::returned;
           });
  };
  const bool counted = report.verdict == Verdict::deadlock && !report.call_counts.empty() && report.call_places.empty();
  if (!counted || std::ranges::none_of(record.pending, is_of_counts)) return "";
  return "the calls from one line look the same: give each a label, such as ctx.label(\"step 17\"), and the report "
         "names the first one that a rank leaves out";
}

std::vector<Place> places_of_texts(const Report& report) {
  std::string words = report.headline;
  const auto add = [&words](const std::vector<std::string>& texts) {
    for (const auto& text : texts) (words += '\n') += text;
  };
  for (const RankLine& line : report.rank_lines) add({line.doing});
  for (const StateFinding& finding : report.findings) add({finding.headline}), add(finding.details);
  add(report.wait_cycle);
  add(report.last_events);
  add(report.remarks);
  return exec::places_in(words);
}

}  // namespace

Report build_report(const WorldOptions& options, const RunRecord& record, bool* lacks_places) {
  Report report = begun_report(options);
  add_figures(options, record, report);
  const Places places(record);
  const RankOutcomes ends(options.ranks, record, places);
  auto diagnosis = find_verdict(options, record, ends);
  diagnosis.write_into(report);
  report.stuck_since = stuck_since(record.outcome, report.verdict);
  report.rank_lines = ends.lines();
  if (diagnosis.absence) report.differences.push_back(std::move(*diagnosis.absence));
  if (options.mode == Mode::real) add_waits_given_up(record, report);
  for (const auto& mismatch : record.mismatches) {
    report.differences.push_back(
        difference_of(mismatch, [&](const comm::Mismatch::Side& side) { return places.place(side.where); }));
  }
  if (report.verdict != Verdict::ok) add_last_operations(record, places, report);
  report.parting = parting_of(report, record, places);
  report.tracebacks = tracebacks_of(record.outcome, places);
  report.call_places = calls_from_different_places(record, report.verdict, places);
  report.call_counts = lines_called_unequally(record, report.verdict, places);
  report.remarks = remarks_of(record, places, report.headline, report.verdict != Verdict::ok);
  for (std::size_t i = 1; i < diagnosis.drifts.size(); ++i) report.remarks.push_back(diagnosis.drifts[i].text);
  report.remarks.insert(report.remarks.end(), record.check_remarks.begin(), record.check_remarks.end());
  for (auto& text : recovery_remarks(record, places)) report.remarks.push_back(std::move(text));
  for (auto& text : memory_remarks(record.memory, options.memory_bytes, places))
    report.remarks.push_back(std::move(text));
  for (auto& text : real_remarks(options)) report.remarks.push_back(std::move(text));
  report.hint = hint_of(record);
  if (report.hint.empty() && diagnosis.drifts.empty()) report.hint = hint_at_labels(report, record);
  report.findings = record.findings;
  report.faults = record.faults;
  report.places = places_of_texts(report);
  if (lacks_places != nullptr) *lacks_places = places.lacks_places();
  return report;
}

}  // namespace rehearse::sim
