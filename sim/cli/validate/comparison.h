// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <rehearse/job/report.h>

#include "record/call_list.h"
#include "record/result_list.h"

namespace rehearse::cli {

// What one of two runs of a scenario came to.
struct ModeRun {
  std::string name;  // "simulation", "gloo"
  Report report;
  std::vector<sim::ListedCall> calls;
  std::vector<sim::ListedResult> results;
  std::vector<int> culprits;

  // Did the process of all ranks die without telling which of them ended it? SIGKILL leaves no time for that.
  bool names_nobody() const;
};

// "ranks 0-1", "nobody", "not known"
std::string culprits_text(const ModeRun& run);

// How two modes' calls compare: of each rank, in each group, one after the other; collectives, and sends and receives.
struct CallComparison {
  std::size_t alike = 0;
  std::vector<std::string> differences;  // the first of each rank and group
};

struct ResultComparison {
  std::size_t bit_equal = 0;
  std::size_t within = 0;      // not equal, and nearer than the tolerance
  double largest = 0;          // relative difference of those
  std::size_t by_figures = 0;  // of `within`: too large for the files, so that least, most and norm were compared
  std::vector<std::string> differences;
};

struct Comparison {
  std::vector<std::string> outcome;  // verdicts or culprits that differ
  CallComparison calls;
  ResultComparison results;

  bool agrees() const { return outcome.empty() && calls.differences.empty() && results.differences.empty(); }
};

// `to_the_end`: both runs came to it; else what one has more than the other does not count: nobody says where a run
// that fails stops.
CallComparison compare_calls(const ModeRun& one, const ModeRun& other, bool to_the_end);

// `tolerance`: how far numbers may lie apart, relative to the largest number of both tensors; nothing: n * n * epsilon
// of the dtype, for `ranks` n. Integers must be equal. NaN equals NaN.
ResultComparison compare_results(const ModeRun& one, const ModeRun& other, std::optional<double> tolerance, int ranks,
                                 bool to_the_end);

Comparison compare(const ModeRun& one, const ModeRun& other, std::optional<double> tolerance);

}  // namespace rehearse::cli
