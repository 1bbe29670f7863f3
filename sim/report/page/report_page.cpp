// SPDX-License-Identifier: BSD-3-Clause
#include "report/page/report_page.h"

#include <algorithm>
#include <ostream>
#include <utility>

#include <fmt/format.h>

#include <rehearse/sim/report_writers.h>
#include <rehearse_internal/formatting/rank_list.h>

#include "report/page/page_assets.h"
#include "report/page/page_text.h"
#include "report/page/rank_rows.h"
#include "report/page/source_excerpts.h"
#include "report/page/timeline_json.h"
#include "report/writers/json_reader.h"
#include "report/writers/known_facts.h"
#include "report/writers/report_json.h"

namespace rehearse::sim {
namespace {

constexpr int kPageFormatVersion = 1;
constexpr std::string_view kPage = "page";
constexpr std::string_view kDataBegins = "<script type=\"application/json\" id=\"data\">";
constexpr std::string_view kDataEnds = "</script>";
constexpr std::size_t kLinesOfPlainMost = 400;
constexpr std::size_t kWaitsMost = 2000;  // lines of a ring of waits
// The most bytes for a report and its timeline together: the timeline may take what the report leaves. If the report
// alone takes no more than this, the page stays below 15 MB, with its scripts and source lines.
constexpr std::size_t kRunTextMost = std::size_t{12} << 20;

// The texts whose source lines the page shows, the most important ones first.
std::vector<std::string> texts_with_places(const Report& report, const Timeline& timeline) {
  std::vector<std::string> texts = {report.headline};
  const auto add = [&](const std::string& text) {
    if (texts.back() != text) texts.push_back(text);
  };
  for (const auto& difference : report.differences) {
    add(difference.first.where.text);
    add(difference.second.where.text);
    for (const auto& side : difference.others) add(side.where.text);
  }
  for (const auto& finding : report.findings) {
    for (const auto& detail : finding.details) add(detail);
  }
  for (const auto& line : report.rank_lines) add(line.where.text);
  for (const auto& line : report.rank_lines) add(line.doing);
  for (const auto& call : report.call_places) {
    for (const auto& side : call.sides) add(side.where.text);
  }
  for (const auto& line : report.call_counts) add(line.where.text);
  for (const auto& remark : report.remarks) add(remark);
  for (const auto& event : report.last_events) add(event);
  for (const auto& site : timeline.sites) {
    if (!site.empty()) add(site.front());
  }
  return texts;
}

Json sources_json(const Report& report, const Timeline& timeline) {
  Json sources = Json::array();
  for (auto& excerpt : source_excerpts(texts_with_places(report, timeline), timeline.files)) {
    sources.push_back({{"name", excerpt.name},
                       {"path", excerpt.path},
                       {"first", excerpt.first},
                       {"lines", excerpt.lines},
                       {"named", excerpt.named}});
  }
  return sources;
}

// Readers without scripts see only the beginning of a very long report.
std::string beginning_of(const std::string& text) {
  std::size_t end = 0;  // of the lines so far
  for (std::size_t lines = 0; lines < kLinesOfPlainMost; ++lines) {
    const auto next = text.find('\n', end);
    if (next == std::string::npos) return text;
    end = next + 1;
  }
  return end == text.size() ? text : text.substr(0, end) + "...\n";
}

std::string tone_name(PageTone tone) {
  return tone == PageTone::good ? "good" : tone == PageTone::partial ? "partial" : "bad";
}

PageTone tone_of(const Report& report) {
  if (report.verdict != Verdict::ok) return PageTone::bad;
  return is_partial(report) ? PageTone::partial : PageTone::good;
}

std::string title_of(const Report& report) {
  const auto verdict = to_string(report.verdict);
  if (report.dumps) return fmt::format("{}: dumps of {}", verdict, describe_ranks(report.dumps->ranks));
  return fmt::format("{}: {}, seed {}", verdict, report.program, report.seed);
}

// Returns how many items it removed.
std::size_t shorten(Json::Array& items, std::size_t most) {
  const auto size = items.size();
  if (size <= most) return 0;
  items.erase(items.begin() + static_cast<std::ptrdiff_t>(most), items.end());
  return size - most;
}

}  // namespace

Json page_run(PageRun run) {
  Json report = report_as_json(run.report);
  auto [rows, ranks_left_out] = rank_rows(run.report.rank_lines);
  report["rank_lines"] = std::move(rows);
  const auto waits_left_out = shorten(report["wait_cycle"].items(), kWaitsMost);
  const std::size_t report_text = run.timeline != nullptr ? json_text(report).size() : 0;
  Json json{{"report", std::move(report)}, {"culprits", rank_runs(run.culprits)}};
  if (ranks_left_out > 0) json["ranks_left_out"] = ranks_left_out;
  if (waits_left_out > 0) json["waits_left_out"] = waits_left_out;
  if (run.timeline != nullptr) {
    json["timeline"] = timeline_json(*run.timeline, kRunTextMost - std::min(report_text, kRunTextMost));
    json["sources"] = sources_json(run.report, *run.timeline);
  }
  if (!run.compiled.items().empty()) json["compiled"] = std::move(run.compiled);
  return json;
}

void write_page(std::ostream& out, const PageHead& head, Json data) {
  data["rehearse_page"] = kPageFormatVersion;
  out << filled(page::skeleton(),
                {{"title", html_text(head.title)},
                 {"tone", tone_name(head.tone)},
                 {"word", html_text(head.word)},
                 {"headline", html_text(head.headline)},
                 {"plain", html_text(beginning_of(head.plain))},
                 {"style", std::string(page::style())},
                 {"data", std::string(kDataBegins) + script_json(std::move(data)) + std::string(kDataEnds)},
                 {"script", std::string(page::script())}});
}

void write_report_page(std::ostream& out, const Report& report, Json run) {
  const PageHead head{.title = title_of(report),
                      .word = std::string(to_string(report.verdict)),
                      .tone = tone_of(report),
                      .headline = report.headline,
                      .plain = to_text(report)};
  Json runs = Json::array();
  runs.push_back(std::move(run));
  write_page(out, head, {{"kind", "report"}, {"runs", std::move(runs)}});
}

Json page_data_in(std::string_view html) {
  const auto begin = html.find(kDataBegins);
  const auto end = begin == std::string_view::npos ? begin : html.find(kDataEnds, begin);
  if (end == std::string_view::npos) throw ReportFormatError("is no page of rehearse: it has no data");
  const auto from = begin + kDataBegins.size();
  Json data = parsed_json(html.substr(from, end - from), kPage);
  const auto version = JsonReader(data, kPage).get<int>("rehearse_page");
  if (version != kPageFormatVersion) {
    throw ReportFormatError(
        fmt::format("is a page of format {}; this rehearse reads format {}", version, kPageFormatVersion));
  }
  return data;
}

}  // namespace rehearse::sim
