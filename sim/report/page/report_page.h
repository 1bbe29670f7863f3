// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include <rehearse/job/report.h>

#include "report/page/timeline.h"
#include "report/writers/json.h"

// Pages to look at, each one file that loads nothing: report.html and its like. What a page shows is data in it, as
// JSON; its scripts (assets) draw that. Equal data give equal bytes; source lines are those of the files as they are.
namespace rehearse::sim {

// What a page knows of a run.
struct PageRun {
  const Report& report;
  std::vector<int> culprits = {};      // culprits_of(report)
  const Timeline* timeline = nullptr;  // null: nobody knows when ranks made which calls
  Json compiled = Json::array();       // compiled_functions()
};

// The run as data of a page: the report with the keys of report.json, ranks that ended alike as one (rank_rows()).
Json page_run(PageRun run);

// partial: all is well as far as is known.
enum class PageTone : std::uint8_t { good, partial, bad };

// What stands on a page before any script has run.
struct PageHead {
  std::string title;  // "DEADLOCK: train, seed 7"
  std::string word;   // the verdict's name
  PageTone tone = PageTone::bad;
  std::string headline;
  std::string plain;  // the whole as text, for readers without scripts
};

// `data` has "kind", by which scripts know what to show: "report", "sweep", "validation".
void write_page(std::ostream& out, const PageHead& head, Json data);

// The page of one run, report.html, of what page_run() gave.
void write_report_page(std::ostream& out, const Report& report, Json run);

// The data of a page that write_page() wrote. Throws ReportFormatError.
Json page_data_in(std::string_view html);

}  // namespace rehearse::sim
