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

// Pages for people, such as report.html. A page is a single file that loads nothing from elsewhere. It contains its
// data as JSON, and its scripts (assets) draw them. Equal data give equal bytes. Source lines come from the files as
// they are now.
namespace rehearse::sim {

struct PageRun {
  const Report& report;
  std::vector<int> culprits = {};      // culprits_of(report)
  const Timeline* timeline = nullptr;  // null: nobody knows when ranks made which calls
  Json compiled = Json::array();       // compiled_functions()
};

// The run as data of a page: the report with the keys of report.json. Ranks that ended alike share a row (rank_rows()).
Json page_run(PageRun run);

// partial: nothing went wrong as far as is known, but some rank of the job left no dump.
enum class PageTone : std::uint8_t { good, partial, bad };

// The part of a page that is visible before any script runs.
struct PageHead {
  std::string title;  // "DEADLOCK: train, seed 7"
  std::string word;   // the verdict's name, or a word for the result of several runs, such as "FAILED"
  PageTone tone = PageTone::bad;
  std::string headline;
  std::string plain;  // everything as text, for readers without scripts
};

// The "kind" in `data` tells the scripts what to show: "report", "sweep", "validation".
void write_page(std::ostream& out, const PageHead& head, Json data);

// Writes report.html, the page of one run. `run` comes from page_run().
void write_report_page(std::ostream& out, const Report& report, Json run);

// Reads the data of a page that write_page() wrote. Throws ReportFormatError.
Json page_data_in(std::string_view html);

}  // namespace rehearse::sim
