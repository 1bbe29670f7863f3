// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include <rehearse/job/rank_context.h>

// The loss of a language model.

inline at::Tensor loss_of(const at::Tensor& logits, const at::Tensor& target) {
  return at::cross_entropy_loss(logits.flatten(0, 1), target.flatten());
}

inline double mean_over_ranks(rehearse::RankContext& ctx, const at::Tensor& value) {
  auto sum = value.detach().clone();
  ctx.group().allreduce(sum)->wait();
  return sum.item<double>() / ctx.size();
}

inline double mean(const std::vector<double>& values, std::size_t first, std::size_t count) {
  double sum = 0;
  for (std::size_t i = first; i < first + count; ++i) sum += values[i];
  return sum / static_cast<double>(count);
}

// Expects that the last quarter of a training has a smaller mean loss than the first.
inline void expect_falling(rehearse::RankContext& ctx, const std::vector<double>& losses) {
  const std::size_t quarter = std::max<std::size_t>(1, losses.size() / 4);
  const double first = mean(losses, 0, quarter), last = mean(losses, losses.size() - quarter, quarter);
  ctx.expect(last < first, "the loss falls", std::to_string(first) + " at first, " + std::to_string(last) + " at last");
}
