// SPDX-License-Identifier: BSD-3-Clause
#include "cli/validate/validation_texts.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <rehearse/sim/report_writers.h>
#include <rehearse_internal/sim/format_time.h>

#include "report/page/report_page.h"
#include "report/writers/json.h"
#include "report/writers/known_facts.h"
#include "report/writers/text_lines.h"

namespace rehearse::cli {
namespace {

constexpr std::size_t kWidth = 120;
constexpr std::size_t kDifferencesShown = 8;

struct SideBySide {
  std::string what, first, second, note;
};

std::string results_note(const ResultComparison& results) {
  if (results.bit_equal + results.within == 0) return "";
  auto text = fmt::format("{} bit-equal", results.bit_equal);
  if (results.within > 0)
    text += fmt::format(", {} within the tolerance, {:.2g} apart at most", results.within, results.largest);
  if (results.by_figures > 0) text += fmt::format(" ({} compared by minimum, maximum and norm)", results.by_figures);
  return text;
}

std::string table_of(const std::vector<SideBySide>& rows) {
  std::array<std::size_t, 3> widths{};
  for (const auto& row : rows) {
    widths[0] = std::max(widths[0], row.what.size());
    widths[1] = std::max(widths[1], row.first.size());
    widths[2] = std::max(widths[2], row.second.size());
  }
  std::string text;
  for (const auto& row : rows) {
    auto line = fmt::format("{:<{}}  {:<{}}  {:<{}}  {}", row.what, widths[0], row.first, widths[1], row.second,
                            widths[2], row.note);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string list_of(const std::vector<std::string>& lines) {
  std::string text;
  for (std::size_t i = 0; i < std::min(lines.size(), kDifferencesShown); ++i)
    text += sim::wrapped("  ", lines[i], kWidth, 4) + "\n";
  if (lines.size() > kDifferencesShown) text += fmt::format("  ... and {} more\n", lines.size() - kDifferencesShown);
  return text;
}

std::string headline_of(const ModeRun& one, const ModeRun& other, const Comparison& comparison) {
  if (comparison.agrees()) {
    return fmt::format("AGREE: {} and {} both end as {}", one.name, other.name, to_string(one.report.verdict));
  }
  for (const auto* const differences : {&comparison.outcome, &comparison.calls.differences}) {
    if (!differences->empty()) return "DISAGREE: " + differences->front();
  }
  return "DISAGREE: " + comparison.results.differences.front();
}

sim::Json json_of(const ModeRun& run) {
  sim::Json json{{"mode", run.name},          {"verdict", to_string(run.report.verdict)},
                 {"culprits", run.culprits},  {"headline", run.report.headline},
                 {"calls", run.calls.size()}, {"results", run.results.size()}};
  if (sim::is_measured(run.report)) json["end_time_ns"] = run.report.end_time.time_since_epoch().count();
  json["files"] = run.report.files;
  return json;
}

sim::Json validation_data(const ModeRun& one, const ModeRun& other, const Comparison& comparison) {
  return {
      {"rehearse_validation", 1},
      {"agree", comparison.agrees()},
      {"program", one.report.program},
      {"ranks", one.report.ranks},
      {"seed", fmt::format("{:#x}", one.report.seed)},
      {"runs", sim::Json::array({json_of(one), json_of(other)})},
      {"outcome_differences", comparison.outcome},
      {"calls_alike", comparison.calls.alike},
      {"call_differences", comparison.calls.differences},
      {"results_bit_equal", comparison.results.bit_equal},
      {"results_within_tolerance", comparison.results.within},
      {"largest_relative_difference", comparison.results.largest},
      {"result_differences", comparison.results.differences},
  };
}

}  // namespace

std::string validation_text(const ModeRun& one, const ModeRun& other, const Comparison& comparison) {
  const auto time = [](const ModeRun& run, const char* kind) {
    if (!sim::is_measured(run.report)) return std::string("not measured");
    return fmt::format("{} {}", sim::format_time(run.report.end_time), kind);
  };
  const auto& report = one.report;
  std::string text = sim::wrapped("", headline_of(one, other, comparison), kWidth, 2) + "\n";
  text +=
      table_of({{"", one.name, other.name, ""},
                {"verdict", std::string(to_string(report.verdict)), std::string(to_string(other.report.verdict)), ""},
                {"culprit", culprits_text(one), culprits_text(other), ""},
                {"calls", std::to_string(one.calls.size()), std::to_string(other.calls.size()),
                 fmt::format("{} alike", comparison.calls.alike)},
                {"results", std::to_string(one.results.size()), std::to_string(other.results.size()),
                 results_note(comparison.results)},
                {"time", time(one, "virtual"), time(other, "real"), ""}});
  for (const auto* const run : {&one, &other}) {
    if (run->report.verdict == Verdict::ok) continue;
    text += sim::wrapped(run->name + ": ", run->report.headline, kWidth, 2) + "\n";
  }
  if (!comparison.agrees()) text += "differences:\n";
  text += list_of(comparison.outcome) + list_of(comparison.calls.differences) + list_of(comparison.results.differences);
  return text + fmt::format("rehearse {} program={} ranks={} seed={}\n", report.version, report.program, report.ranks,
                            report.seed);
}

void write_validation_page(std::ostream& out, const ModeRun& one, const ModeRun& other, const Comparison& comparison,
                           const sim::Json& runs) {
  const auto headline = headline_of(one, other, comparison);
  const auto word = headline.substr(0, headline.find(':'));
  const sim::PageHead head{.title = fmt::format("{}: {}, {} and {}", word, one.report.program, one.name, other.name),
                           .word = word,
                           .tone = comparison.agrees() ? sim::PageTone::good : sim::PageTone::bad,
                           .headline = headline.substr(word.size() + 2),
                           .plain = validation_text(one, other, comparison)};
  sim::write_page(out, head,
                  {{"kind", "validation"}, {"validation", validation_data(one, other, comparison)}, {"runs", runs}});
}

std::string validation_json(const ModeRun& one, const ModeRun& other, const Comparison& comparison) {
  return sim::json_text(validation_data(one, other, comparison), 2) + "\n";
}

}  // namespace rehearse::cli
