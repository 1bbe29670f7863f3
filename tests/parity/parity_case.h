// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

namespace rehearse::parity {

using ProcessGroup = c10::intrusive_ptr<c10d::ProcessGroup>;
using Tensors = std::vector<at::Tensor>;

// How to compare the results of a case on fibers and with gloo.
enum class Expected {
  equal_bits,   // or both refuse, with texts that agree
  rounding,     // other order of the same sum: equal bits on 2 ranks, within_rounding() on more
  exact_sums,   // exact sums, whose means may round: equal bits on 2, 4, 8 ranks, else within_rounding()
  gloo_lacks,   // gloo refuses because it has no implementation; ours works
  gloo_is_lax,  // a mistake that gloo lets pass, with an arbitrary result; ours refuses
};

// Every rank runs the same `body`. It makes some calls of c10d on the group, and returns the values that the rank then
// holds.
struct Case {
  std::string name;
  std::function<Tensors(const ProcessGroup& group)> body;
  Expected expected = Expected::equal_bits;
};

struct Result {
  std::string refusal;  // the first line of the exception's text; empty: none
  Tensors values;       // contiguous
};

// Each case must run on 2, 3, 4 and 5 ranks.
std::vector<Case> collective_cases();
std::vector<Case> reduction_cases();
std::vector<Case> refusal_cases();
std::vector<Case> layout_cases();
std::vector<Case> composed_cases();  // includes sparse ones
std::vector<Case> sparse_cases();
std::vector<Case> ddp_cases();  // includes exact ones
std::vector<Case> ddp_exact_cases();
std::vector<Case> power_sgd_cases();
std::vector<Case> fsdp_cases();

// Runs all cases one after the other. An exception of a case becomes its refusal, but RankAborted passes through, so
// that the rank ends with its world.
std::vector<Result> run_cases(const std::vector<Case>& cases, const ProcessGroup& group);

// Small whole numbers that vary with the element and the rank. Their sums over 5 ranks are exact in every dtype.
at::Tensor exact(at::IntArrayRef sizes, at::ScalarType dtype, int rank);

// Numbers between -1 and 1 with all bits in use.
at::Tensor rough(at::IntArrayRef sizes, at::ScalarType dtype, int rank);

}  // namespace rehearse::parity
