// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <set>
#include <string>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>

#include "differential/operators/sample.h"

namespace rehearse_test::differential {

// The operator's family, by its name and schema: "in place", "views", "pointwise" and so on.
std::string family_of(const c10::OperatorHandle& op);

// Returns whether an argument other than `out` is or contains a tensor.
bool takes_tensors(const c10::FunctionSchema& schema);

// The ways in which compile() treats an operator, from best to worst.
enum class Fate { Captured, RunsEagerly, Refused, ForOthers, NoSamples, Throws, Wrong, Crashes };

const char* to_string(Fate fate);

struct Trial {
  Fate fate = Fate::NoSamples;
  int samples = 0;
  std::string why;     // short
  std::string detail;  // in full
};

// The operators that the CPU can run, sorted by name. Leaves out operators of other devices.
std::vector<c10::OperatorHandle> operators_of_the_cpu();

// The progress of a trial. It is in memory that outlives the trial's process, because LibTorch itself crashes on some
// arguments.
struct TrialPlace {
  int choice = -1;        // the index of the present choice
  bool compiles = false;  // false: eager mode runs
};

// Returns choices with which the operator runs in eager mode at every size that the calls use. These are at most `most`
// plain choices, and if possible one with non-contiguous tensors and one with empty tensors. Leaves out the indices in
// `skipped`. Sets `error`, if given, to eager mode's first error.
std::vector<Choice> working_choices(const c10::OperatorHandle& op, std::size_t most, const std::set<int>& skipped,
                                    TrialPlace& place, std::string* error = nullptr);

// Compares the compiled operator with eager mode. The samples are the working choices for which all runs in eager mode
// give the same answer. Returns the worst result of all samples. A result that is better than Throws counts only if
// there are at least three samples. If the operator takes tensors, one of the samples must have an empty or
// non-contiguous tensor. If the result does not count, returns NoSamples or ForOthers.
Trial try_operator(const c10::OperatorHandle& op, const std::set<int>& skipped, TrialPlace& place);

}  // namespace rehearse_test::differential
