// SPDX-License-Identifier: BSD-3-Clause
#include <cstddef>
#include <cstdint>
#include <ostream>

#include <rehearse/job/report.h>
#include <rehearse/sim/report_writers.h>

#include "fuzz_files/input.h"
#include "report/page/report_page.h"

// A report that can be read can be shown and written, and is then read back alike.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rehearse;
  Report report;
  try {
    report = sim::report_from_json(fuzz::text_of(data, size));
  } catch (const sim::ReportFormatError&) {
    return 0;
  }
  sim::to_text(report);
  sim::page_run({.report = report});
  const auto written = sim::to_json(report);
  fuzz::require(sim::to_json(sim::report_from_json(written)) == written, "reports are read as written");
  return 0;
}

// AddressSanitizer keeps each stack that allocates, and in ten minutes they fill 2 GB.
extern "C" const char* __asan_default_options() { return "malloc_context_size=1"; }
