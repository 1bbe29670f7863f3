// SPDX-License-Identifier: BSD-3-Clause
#include "run/run_page.h"

#include <optional>
#include <ostream>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <rehearse/sim/report_writers.h>
#include <rehearse_internal/sim/input_file.h>

#include "report/page/compiled_functions.h"
#include "report/page/event_timeline.h"
#include "report/page/report_page.h"
#include "report/writers/culprits.h"

namespace rehearse::sim {
namespace {

using std::filesystem::path;

constexpr std::size_t kStoredBytesMost = std::size_t{1} << 30;

// The result of `parse` on the file; nothing if the file is missing or has other content.
template <class Parse>
auto stored(const path& file, const Parse& parse) -> std::optional<decltype(parse(std::string()))> {
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return std::nullopt;
  try {
    return parse(read_input(file, "file", [](std::string_view) { return kStoredBytesMost; }));
  } catch (const InputError&) {         // the file is gone or too large
  } catch (const ReportFormatError&) {  // other content
  } catch (const JsonError&) {          // other content
  }
  return std::nullopt;
}

constexpr std::string_view kNotMeasured = "0x0";  // a fact that a file lacks counts as having this value

std::string identity_text(const Report& report) { return fmt::format("{:#x}", report.identity); }

bool is_of(const Json& facts, const Report& report) {
  const auto says = [&](const char* key, const std::string& expected) {
    const auto* const value = facts.find(key);
    if (value == nullptr) return expected == kNotMeasured;
    return value->is_text() && value->get<std::string>() == expected;
  };
  return says("program", report.program) && says("seed", fmt::format("{:#x}", report.seed)) &&
         says("identity", identity_text(report));
}

// `same_run`: the caller knows that the files belong to this run. Merged files do not say to which run they belong.
std::optional<Timeline> stored_timeline(const Report& report, const path& folder, bool same_run) {
  const auto json_of_run = [&](const std::string& text, const char* key) {
    auto json = parse_json(text);
    const auto* const facts = json.find(key);
    if (!same_run && (facts == nullptr || !is_of(*facts, report))) throw JsonError("is of another run");
    return json;
  };
  auto timeline = stored(folder / "trace.json", [&](const std::string& text) {
    return timeline_in_trace(json_of_run(text, "otherData"), report.ranks);
  });
  if (!timeline) return timeline;
  auto files = stored(folder / "flight_recorder.json",
                      [&](const std::string& text) { return files_in_flight_recorder(json_of_run(text, "run")); });
  if (files) timeline->files = std::move(*files);
  return timeline;
}

Json run_of(const Report& report, const Timeline* timeline) {
  return page_run({.report = report, .culprits = culprits_of(report), .timeline = timeline});
}

// The run from an earlier page; nothing if there is no page of this run, or if the page has no calls.
std::optional<Json> run_of_earlier_page(const Report& report, const path& folder) {
  return stored(folder / "report.html", [&](const std::string& text) {
    const auto data = page_data_in(text);
    const auto& earlier = data.at("runs").items().at(0);
    if (!is_of(earlier.at("report"), report)) throw JsonError("is of another run");
    auto run = run_of(report, nullptr);
    run["timeline"] = earlier.at("timeline");
    for (const char* const key : {"sources", "compiled"}) {
      if (const auto* const value = earlier.find(key)) run[key] = *value;
    }
    return run;
  });
}

Json run_that_ended(const RunResults& results) {
  const Report& report = results.report;
  std::optional<Timeline> timeline;
  if (!results.stored_in.empty()) timeline = stored_timeline(report, results.stored_in, true);
  const auto* const events = results.explained != nullptr ? results.explained : results.events;
  if (events != nullptr) timeline = timeline_of(*events, report.ranks, report.stuck_since);
  return page_run({.report = report,
                   .culprits = culprits_of(report),
                   .timeline = timeline ? &*timeline : nullptr,
                   .compiled = results.compiled != nullptr ? compiled_functions(*results.compiled) : Json::array()});
}

}  // namespace

void write_run_page(std::ostream& out, const RunResults& results) {
  write_report_page(out, results.report, run_that_ended(results));
}

Json stored_page_run(const Report& report, const path& folder) {
  if (auto run = run_of_earlier_page(report, folder)) return std::move(*run);
  const auto timeline = stored_timeline(report, folder, false);
  return run_of(report, timeline ? &*timeline : nullptr);
}

}  // namespace rehearse::sim
