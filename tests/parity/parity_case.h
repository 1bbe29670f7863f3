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

// How the two results are compared.
enum class Expected {
  equal_bits,   // also when both refuse
  rounding,     // sums of the same numbers in another order: equal bits on 2 ranks, within_rounding() on more
  exact_sums,   // sums that are exact, and means where the number of ranks is a power of two; else within_rounding()
  gloo_lacks,   // gloo refuses because it has no implementation; we do it
  gloo_is_lax,  // a mistake that gloo lets pass, with whatever result; we refuse
};

// A few calls of c10d on one group, the same on every rank of it; gives what this rank then holds.
struct Case {
  std::string name;
  std::function<Tensors(const ProcessGroup& group)> body;
  Expected expected = Expected::equal_bits;
};

// What a rank got from one case.
struct Result {
  std::string refusal;  // the first line of the exception's text; empty: none
  Tensors values;       // contiguous
};

// Every case is run on every number of ranks.
std::vector<Case> collective_cases();
std::vector<Case> reduction_cases();
std::vector<Case> refusal_cases();
std::vector<Case> layout_cases();
std::vector<Case> composed_cases();  // sparse ones among them
std::vector<Case> sparse_cases();
std::vector<Case> ddp_cases();  // exact ones among them
std::vector<Case> ddp_exact_cases();
std::vector<Case> power_sgd_cases();
std::vector<Case> fsdp_cases();

// Runs all cases one after the other. Ranks that unwind with their world do so.
std::vector<Result> run_cases(const std::vector<Case>& cases, const ProcessGroup& group);

// Small whole numbers, different for each element and rank; sums of them over 5 ranks are exact in every dtype.
at::Tensor exact(at::IntArrayRef sizes, at::ScalarType dtype, int rank);

// The same between -1 and 1 with all bits in use.
at::Tensor rough(at::IntArrayRef sizes, at::ScalarType dtype, int rank);

}  // namespace rehearse::parity
