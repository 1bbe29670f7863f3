// SPDX-License-Identifier: BSD-3-Clause
// Contract: coalesced calls give every rank the values that the same calls give one by one, under any schedule.
#include <functional>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rehearse/rehearse.h>

#include "bit_equal.h"

namespace rehearse {
namespace {

using rehearse::test::BitEqual;

using Tensors = std::vector<at::Tensor>;

const std::vector<std::vector<std::int64_t>> kShapes{{3}, {2, 2}, {}, {0}, {1000}};

at::Tensor of_rank(int rank, at::IntArrayRef sizes, std::int64_t salt) {
  const auto count = c10::multiply_integers(sizes);
  return (at::arange(count, at::kDouble) * (rank + 1) + static_cast<double>(salt)).reshape(sizes);
}

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
      EXPECT_THAT(tensors[i], BitEqual(expected)) << "tensor " << i << " on rank " << ctx.rank();
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
        EXPECT_THAT(outputs[static_cast<std::size_t>(r)][i], BitEqual(of_rank(r, kShapes[i], i)));
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
        EXPECT_THAT(wholes[i].narrow(0, r * count, count), BitEqual(of_rank(r, {count}, count)));
      }
    }
    for (auto& whole : wholes) whole.mul_(ctx.rank() + 1);
    ctx.group()->reduce_scatter_tensor_coalesced(sums, wholes)->wait();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      EXPECT_THAT(sums[i], BitEqual(parts[i] * (n * (n + 1) / 2)));
    }
  });
}

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
      EXPECT_THAT(whole.narrow(0, 2 * r, 2), BitEqual(of_rank(r, {2}, 1)));
      EXPECT_EQ(shuffled[r].item<double>(), ctx.rank() + 100.0 * r);
    }
    EXPECT_THAT(sum, BitEqual(expected));
    if (n > 1) {
      EXPECT_THAT(received, BitEqual(of_rank(previous, {5}, 9)));
    }
  });
}

// Gloo flattens all inputs before it reduces. Memory that occurs twice in the list, as a whole or in part, is reduced
// once.
TEST(Coalesced, TensorThatIsThereTwice_IsReducedOnce) {
  for_worlds([](RankContext& ctx) {
    auto expected = at::zeros({6}, at::kDouble);
    for (int r = 0; r < ctx.size(); ++r) expected += of_rank(r, {6}, 1);
    auto tensor = of_rank(ctx.rank(), {6}, 1);
    Tensors twice{tensor, tensor};
    ctx.group()->allreduce_coalesced(twice)->wait();
    EXPECT_THAT(tensor, BitEqual(expected)) << "the tensor twice, on rank " << ctx.rank() << " of " << ctx.size();
    auto base = of_rank(ctx.rank(), {3, 2}, 1);
    Tensors views{base.narrow(0, 0, 2), base.narrow(0, 1, 2), base.t()};
    ctx.group()->allreduce_coalesced(views)->wait();
    EXPECT_THAT(base.view({6}), BitEqual(expected))
        << "overlapping views, on rank " << ctx.rank() << " of " << ctx.size();
  });
}

TEST(Coalesced, OutputThatIsAnotherPartsInput_IsReadFirst) {
  for_worlds([](RankContext& ctx) {
    const std::int64_t n = ctx.size();
    auto part = of_rank(ctx.rank(), {1}, 0), next = of_rank(ctx.rank(), {n}, 5),
         whole = at::zeros({n * n}, at::kDouble);
    Tensors inputs{part, next}, outputs{next, whole};
    ctx.group()->allgather_into_tensor_coalesced(outputs, inputs)->wait();
    for (int r = 0; r < n; ++r) {
      EXPECT_EQ(next[r].item<double>(), of_rank(r, {1}, 0).item<double>());
      EXPECT_THAT(whole.narrow(0, n * r, n), BitEqual(of_rank(r, {n}, 5)));
    }
    auto first = of_rank(0, {n * n}, 1), second = of_rank(0, {n}, 7), third = at::zeros({1}, at::kDouble);
    Tensors wholes{first, second}, sums{second, third};
    ctx.group()->reduce_scatter_tensor_coalesced(sums, wholes)->wait();
    EXPECT_THAT(second, BitEqual(of_rank(0, {n * n}, 1).narrow(0, n * ctx.rank(), n) * n));
    EXPECT_EQ(third.item<double>(), of_rank(0, {n}, 7)[ctx.rank()].item<double>() * n);
  });
}

// A call writes only the tensors of ranks that get a result: the root of a reduce, all but the root of a broadcast.
TEST(Coalesced, RootsBetweenStartAndEnd_ReadWhatWasThereBefore) {
  for_worlds([](RankContext& ctx) {
    const int last = ctx.size() - 1;
    auto sum = at::zeros({4}, at::kDouble);
    for (int r = 0; r < ctx.size(); ++r) sum += of_rank(r, {4}, 3);
    auto reduced = of_rank(ctx.rank(), {4}, 3), sent = of_rank(ctx.rank(), {4}, 3);
    ctx.group()->startCoalescing(at::kCPU);
    ctx.group().allreduce(reduced);
    ctx.group().reduce(reduced, last);
    ctx.group().allreduce(sent);
    ctx.group().broadcast(sent, last);
    EXPECT_TRUE(ctx.group()->endCoalescing(at::kCPU)->wait());
    EXPECT_THAT(reduced, BitEqual(sum)) << "rank " << ctx.rank() << " of " << ctx.size();
    EXPECT_THAT(sent, BitEqual(ctx.rank() == last ? sum : of_rank(last, {4}, 3)));
  });
}

// A rank may send to itself in a batch, as with NCCL, but not outside a batch.
TEST(Coalesced, MessageToItself_ArrivesAmongTheOthers) {
  for (const bool as_one : {false, true}) {
    for (const int ranks : {1, 2, 3, 8}) {
      check({.ranks = ranks, .coalesced_as_one = as_one}, [](RankContext& ctx) {
        const int n = ctx.size(), next = (ctx.rank() + 1) % n, previous = (ctx.rank() + n - 1) % n;
        auto own = of_rank(ctx.rank(), {4}, 2), received = at::zeros({4}, at::kDouble),
             message = of_rank(ctx.rank(), {3}, 5), from_previous = at::zeros({3}, at::kDouble);
        ctx.group()->startCoalescing(at::kCPU);
        ctx.group().send(own, ctx.rank(), 1);
        ctx.group().send(message, next);
        ctx.group().recv(received, ctx.rank(), 1);
        ctx.group().recv(from_previous, previous);
        EXPECT_TRUE(ctx.group()->endCoalescing(at::kCPU)->wait());
        EXPECT_THAT(received, BitEqual(own));
        EXPECT_THAT(from_previous, BitEqual(of_rank(previous, {3}, 5)));
        EXPECT_THROW(ctx.group().send(own, ctx.rank()), c10::Error);
      });
    }
  }
}

TEST(Coalesced, MessageToItselfThatIsNotReceived_IsReported) {
  const auto report = World({.ranks = 2}).run([](RankContext& ctx) {
    if (ctx.rank() == 0) return;
    ctx.group()->startCoalescing(at::kCPU);
    ctx.group().send(at::ones({1}), 1);
    ctx.group()->endCoalescing(at::kCPU)->wait();
  });
  EXPECT_EQ(report.verdict, Verdict::deadlock);
  EXPECT_EQ(report.headline.substr(0, 61), "rank 1 waits forever in send #1 to rank 1 on group \"world\" at");
}

// NCCL launches a batch as one unit; c10d's other back ends do not. WorldOptions::coalesced_as_one finds the hang.
TEST(Coalesced, BatchThatMovesAsOne_MayHangWhereItsPartsWouldNot) {
  for (const bool as_one : {false, true}) {
    for (const std::uint64_t seed : {1, 2, 3}) {
      const auto report = World({.ranks = 3, .seed = seed, .coalesced_as_one = as_one}).run([](RankContext& ctx) {
        auto tensor = at::ones({1});
        if (ctx.rank() == 0) {
          ctx.group()->startCoalescing(at::kCPU);
          ctx.group().send(tensor, 1);
          ctx.group().recv(at::ones({1}), 2);
          ctx.group()->endCoalescing(at::kCPU)->wait();
        } else {
          ctx.group().recv(tensor, ctx.rank() - 1)->wait();
          ctx.group().send(tensor, (ctx.rank() + 1) % 3)->wait();
        }
      });
      EXPECT_EQ(report.verdict, as_one ? Verdict::deadlock : Verdict::ok) << report.headline;
      if (!as_one) continue;
      EXPECT_EQ(
          report.headline,
          "ranks 0 -> 2 -> 1 -> 0 wait for each other: rank 0 in send #1 to rank 1 on group \"world\" and recv #2 "
          "from rank 2 on group \"world\", rank 2 in recv #1 from rank 1 on group \"world\", rank 1 in recv #1 "
          "from rank 0 on group \"world\"");
    }
  }
}

}  // namespace
}  // namespace rehearse
