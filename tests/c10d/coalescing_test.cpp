// SPDX-License-Identifier: BSD-3-Clause
// Contract: coalesced calls give every rank the values that the same calls give one by one, under any schedule.
#include <functional>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <rehearse/rehearse.h>

namespace rehearse {
namespace {

using Tensors = std::vector<at::Tensor>;

const std::vector<std::vector<std::int64_t>> kShapes{{3}, {2, 2}, {}, {0}, {1000}};

at::Tensor of_rank(int rank, at::IntArrayRef sizes, std::int64_t salt) {
  const auto count = c10::multiply_integers(sizes);
  return (at::arange(count, at::kDouble) * (rank + 1) + static_cast<double>(salt)).reshape(sizes);
}

// Every group size and seed.
void for_worlds(const std::function<void(RankContext&)>& body) {
  for (const int ranks : {1, 2, 3, 5}) {
    for (const std::uint64_t seed : {1, 2, 3}) {
      WorldOptions options;
      options.ranks = ranks;
      options.seed = seed;
      check(options, body);
    }
  }
}

TEST(Coalesced, Allreduce_SumsEachTensor) {
  for_worlds([](RankContext& ctx) {
    Tensors tensors;
    for (std::size_t i = 0; i < kShapes.size(); ++i) tensors.push_back(of_rank(ctx.rank(), kShapes[i], i));
    ctx.group()->allreduce_coalesced(tensors)->wait();
    for (std::size_t i = 0; i < kShapes.size(); ++i) {
      auto expected = at::zeros(kShapes[i], at::kDouble);
      for (int r = 0; r < ctx.size(); ++r) expected += of_rank(r, kShapes[i], i);
      EXPECT_TRUE(at::equal(tensors[i], expected)) << "tensor " << i << " on rank " << ctx.rank();
    }
  });
}

TEST(Coalesced, Allgather_GathersEachTensor) {
  for_worlds([](RankContext& ctx) {
    Tensors inputs;
    std::vector<Tensors> outputs(static_cast<std::size_t>(ctx.size()));
    for (std::size_t i = 0; i < kShapes.size(); ++i) {
      inputs.push_back(of_rank(ctx.rank(), kShapes[i], i));
      for (auto& list : outputs) list.push_back(at::full(kShapes[i], -1.0, at::kDouble));
    }
    ctx.group()->allgather_coalesced(outputs, inputs)->wait();
    for (int r = 0; r < ctx.size(); ++r) {
      for (std::size_t i = 0; i < kShapes.size(); ++i) {
        EXPECT_TRUE(at::equal(outputs[static_cast<std::size_t>(r)][i], of_rank(r, kShapes[i], i)));
      }
    }
  });
}

TEST(Coalesced, TensorForms_GatherAndScatterEachTensor) {
  for_worlds([](RankContext& ctx) {
    const std::int64_t n = ctx.size();
    Tensors parts, wholes, sums;
    for (const std::int64_t count : {1, 4, 0, 333}) {
      parts.push_back(of_rank(ctx.rank(), {count}, count));
      wholes.push_back(at::empty({n * count}, at::kDouble));
      sums.push_back(at::empty({count}, at::kDouble));
    }
    ctx.group()->allgather_into_tensor_coalesced(wholes, parts)->wait();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto count = parts[i].numel();
      for (int r = 0; r < n; ++r) {
        EXPECT_TRUE(at::equal(wholes[i].narrow(0, r * count, count), of_rank(r, {count}, count)));
      }
    }
    for (auto& whole : wholes) whole.mul_(ctx.rank() + 1);
    ctx.group()->reduce_scatter_tensor_coalesced(sums, wholes)->wait();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      EXPECT_TRUE(at::equal(sums[i], parts[i] * (n * (n + 1) / 2)));
    }
  });
}

// A step of a pipeline with a collective in between, as one.
TEST(Coalesced, CallsBetweenStartAndEnd_GiveWhatTheyGiveAlone) {
  for_worlds([](RankContext& ctx) {
    const int n = ctx.size();
    const int next = (ctx.rank() + 1) % n, previous = (ctx.rank() + n - 1) % n;
    auto sum = of_rank(ctx.rank(), {17}, 0), message = of_rank(ctx.rank(), {5}, 9),
         received = at::zeros({5}, at::kDouble);
    auto whole = at::empty({2 * n}, at::kDouble), part = of_rank(ctx.rank(), {2}, 1);
    auto shuffled = at::empty({n}, at::kDouble), sent = at::arange(n, at::kDouble) + 100.0 * ctx.rank();
    ctx.group()->startCoalescing(at::kCPU);
    ctx.group().allreduce(sum);
    if (n > 1) {
      ctx.group().send(message, next);
      ctx.group().recv(received, previous);
    }
    ctx.group()->_allgather_base(whole, part);
    ctx.group().alltoall(shuffled, sent);
    EXPECT_TRUE(ctx.group()->endCoalescing(at::kCPU)->wait());
    auto expected = at::zeros({17}, at::kDouble);
    for (int r = 0; r < n; ++r) {
      expected += of_rank(r, {17}, 0);
      EXPECT_TRUE(at::equal(whole.narrow(0, 2 * r, 2), of_rank(r, {2}, 1)));
      EXPECT_EQ(shuffled[r].item<double>(), ctx.rank() + 100.0 * r);
    }
    EXPECT_TRUE(at::equal(sum, expected));
    if (n > 1) {
      EXPECT_TRUE(at::equal(received, of_rank(previous, {5}, 9)));
    }
  });
}

}  // namespace
}  // namespace rehearse
