// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <rehearse/sim/world.h>

#include "kit/boxed_op.h"

namespace rehearse::comm {

// Runs the body on all ranks under a few schedules. Each world must end with the verdict OK.
inline void on_ranks(int ranks, const World::Body& body) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    World world({.ranks = ranks, .seed = seed});
    const Report report = world.run(body);
    EXPECT_EQ(report.verdict, Verdict::ok) << "seed " << seed << ": " << report.headline;
    for (const RankLine& line : report.rank_lines) {
      if (line.state == RankOutcome::failed) ADD_FAILURE() << "rank " << line.rank << ": " << line.doing;
    }
    if (::testing::Test::HasFailure()) return;
  }
}

// Whole numbers that differ between ranks. Their sums and products with small numbers are exact.
inline at::Tensor values(at::IntArrayRef sizes, int rank) {
  return (at::arange(c10::multiply_integers(sizes), at::kDouble) + 10 * rank).view(sizes);
}

inline std::vector<at::Tensor> values_of_all(at::IntArrayRef sizes, int ranks) {
  std::vector<at::Tensor> all;
  for (int rank = 0; rank < ranks; ++rank) all.push_back(values(sizes, rank));
  return all;
}

inline at::Tensor sum_of(const std::vector<at::Tensor>& tensors) { return at::stack(tensors).sum(0); }

template <class Signature>
auto op(const char* name) {
  return test::BoxedOp<Signature>(name);
}

}  // namespace rehearse::comm
