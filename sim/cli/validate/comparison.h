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

// The result of one of two runs of a scenario.
struct ModeRun {
  std::string name;  // "simulation", "gloo"
  Report report;
  std::vector<sim::ListedCall> calls;
  std::vector<sim::ListedResult> results;
  std::vector<int> culprits;

  // True if all ranks ran in one process, the process died, and nothing shows which rank was running: SIGKILL leaves no
  // time to note the rank.
  bool names_nobody() const;
};

// For example "ranks 0-1", "nobody", "not known".
std::string culprits_text(const ModeRun& run);

// Compares the calls of two modes one by one, for each rank and group. Collectives and messages are separate sequences.
struct CallComparison {
  std::size_t alike = 0;
  std::vector<std::string> differences;  // the first difference of each rank and group
};

struct ResultComparison {
  std::size_t bit_equal = 0;
  std::size_t within = 0;      // not equal, but within the tolerance
  double largest = 0;          // the largest relative difference in `within`
  std::size_t by_figures = 0;  // part of `within`: too large for the files, compared by smallest, largest and norm
  std::vector<std::string> differences;
};

struct Comparison {
  std::vector<std::string> outcome;  // differences in verdict or culprits
  CallComparison calls;
  ResultComparison results;

  bool agrees() const { return outcome.empty() && calls.differences.empty() && results.differences.empty(); }
};

// `to_the_end`: both runs ended with the verdict OK. Otherwise additional calls in one of them do not count, because a
// failing run may stop anywhere.
CallComparison compare_calls(const ModeRun& one, const ModeRun& other, bool to_the_end);

// `tolerance`: how far numbers may differ, relative to the largest number in both tensors; nothing: n * n * epsilon of
// the coarsest dtype among the result and the tensors of the calls of `one`, for n ranks. Values of a dtype that does
// not round, such as integers, must be equal. NaN equals NaN.
ResultComparison compare_results(const ModeRun& one, const ModeRun& other, std::optional<double> tolerance, int ranks,
                                 bool to_the_end);

Comparison compare(const ModeRun& one, const ModeRun& other, std::optional<double> tolerance);

}  // namespace rehearse::cli
