// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <set>
#include <string>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>

#include "differential/operators/sample.h"

namespace rehearse_test::differential {

// What an operator does, by its schema: "in place", "views", or its namespace.
std::string family_of(const c10::OperatorHandle& op);

// Whether an argument other than `out` is, or has, a tensor.
bool takes_tensors(const c10::FunctionSchema& schema);

// What compile() makes of an operator, from the best to the worst.
enum class Fate { Captured, RunsEagerly, Refused, ForOthers, NoSamples, Throws, Wrong, Crashes };

const char* to_string(Fate fate);

struct Trial {
  Fate fate = Fate::NoSamples;
  int samples = 0;
  std::string why;     // in short
  std::string detail;  // in full
};

// Operators that the CPU can run, by name.
std::vector<c10::OperatorHandle> operators_of_the_cpu();

// Where a trial is, in memory that outlives its process: LibTorch itself crashes on some arguments.
struct Place {
  int choice = -1;        // the index of the choice that is tried
  bool compiles = false;  // else eager runs
};

// Choices by which eager runs the operator at every size of the calls: at most `most`, of different forms, with one
// that is not contiguous and one that is empty where there are any. `skipped`: indices of choices that are left out.
// `error`, if given, gets the first error of eager mode.
std::vector<Choice> working_choices(const c10::OperatorHandle& op, std::size_t most, const std::set<int>& skipped,
                                    Place& place, std::string* error = nullptr);

// The operator inside of compile() against itself, by the choices that work. The worst of all. It counts if eager mode
// gave one answer to at least three samples, one of them with a tensor that is empty or not contiguous.
Trial try_operator(const c10::OperatorHandle& op, const std::set<int>& skipped, Place& place);

}  // namespace rehearse_test::differential
