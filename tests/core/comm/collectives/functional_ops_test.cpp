// SPDX-License-Identifier: BSD-3-Clause
// Contract: LibTorch's functional collectives work in ranks through the dispatcher. Each rank has its own registries of
// groups and works.
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>

#include "bit_equal.h"
#include "core/comm/whole_world.h"

namespace rehearse::comm {
namespace {

using at::Tensor;
using rehearse::test::BitEqual;
using Splits = c10::SymIntArrayRef;

Tensor wait(const Tensor& tensor) { return op<Tensor(const Tensor&)>("_c10d_functional::wait_tensor").call(tensor); }

class FunctionalOps : public ::testing::TestWithParam<int> {
 protected:
  const int ranks = GetParam();
};

TEST_P(FunctionalOps, AllReduce_NewAndInPlace) {
  on_ranks(ranks, [this](RankContext& ctx) {
    const auto fresh = op<Tensor(const Tensor&, std::string, std::string)>("_c10d_functional::all_reduce");
    const auto in_place = op<Tensor&(Tensor&, std::string, std::string)>("_c10d_functional::all_reduce_");
    const auto all = at::stack(values_of_all({5}, ranks));
    const auto input = values({5}, ctx.rank());
    EXPECT_THAT(wait(fresh.call(input, "sum", "world")), BitEqual(all.sum(0)));
    EXPECT_THAT(wait(fresh.call(input, "max", "world")), BitEqual(std::get<0>(all.max(0))));
    EXPECT_THAT(wait(fresh.call(input, "min", "world")), BitEqual(std::get<0>(all.min(0))));
    EXPECT_THAT(wait(fresh.call(input, "avg", "world")), BitEqual(all.sum(0) / ranks));
    EXPECT_THAT(input, BitEqual(values({5}, ctx.rank())));
    auto changed = input.clone();
    const auto& result = in_place.call(changed, "sum", "world");
    EXPECT_TRUE(result.is_same(changed));
    EXPECT_THAT(wait(changed), BitEqual(all.sum(0)));
  });
}

TEST_P(FunctionalOps, AllGather_NewAndOut) {
  on_ranks(ranks, [this](RankContext& ctx) {
    const auto fresh = op<Tensor(const Tensor&, std::int64_t, std::string)>("_c10d_functional::all_gather_into_tensor");
    const auto into =
        op<Tensor&(Tensor&, std::int64_t, const std::string&, Tensor&)>("_c10d_functional::all_gather_into_tensor_out");
    const auto expected = at::cat(values_of_all({2, 3}, ranks));
    auto input = values({2, 3}, ctx.rank());
    EXPECT_THAT(wait(fresh.call(input, ranks, "world")), BitEqual(expected));
    auto output = at::zeros({2 * ranks, 3}, at::kDouble);
    into.call(input, ranks, "world", output);
    wait(output);  // not the call's result: if LibTorch boxes the call, the result is `input`
    EXPECT_THAT(output, BitEqual(expected));
  });
}

TEST_P(FunctionalOps, ReduceScatter_NewAndOut) {
  on_ranks(ranks, [this](RankContext& ctx) {
    const auto fresh =
        op<Tensor(const Tensor&, std::string, std::int64_t, std::string)>("_c10d_functional::reduce_scatter_tensor");
    const auto into = op<Tensor(const Tensor&, std::string, std::int64_t, std::string, Tensor&)>(
        "_c10d_functional::reduce_scatter_tensor_out");
    const auto expected = sum_of(values_of_all({2 * ranks, 3}, ranks)).slice(0, 2 * ctx.rank(), 2 * ctx.rank() + 2);
    const auto input = values({2 * ranks, 3}, ctx.rank());
    EXPECT_THAT(wait(fresh.call(input, "sum", ranks, "world")), BitEqual(expected));
    auto output = at::zeros({2, 3}, at::kDouble);
    wait(into.call(input, "sum", ranks, "world", output));
    EXPECT_THAT(output, BitEqual(expected));
  });
}

TEST_P(FunctionalOps, AllToAll_UnevenSplits) {
  on_ranks(ranks, [this](RankContext& ctx) {
    const auto call = op<Tensor(const Tensor&, Splits, Splits, std::string)>("_c10d_functional::all_to_all_single");
    const auto rows = [](int from, int to) { return (from + to) % 3; };
    std::vector<c10::SymInt> splits;  // symmetric: a rank sends as much to another rank as it gets from that rank
    std::int64_t total = 0;
    std::vector<Tensor> expected;
    for (int other = 0; other < ranks; ++other) {
      splits.emplace_back(rows(ctx.rank(), other));
      total += rows(ctx.rank(), other);
      expected.push_back(at::full({rows(other, ctx.rank()), 2}, 100 * other + ctx.rank(), at::kDouble));
    }
    std::vector<Tensor> sent;
    for (int to = 0; to < ranks; ++to)
      sent.push_back(at::full({rows(ctx.rank(), to), 2}, 100 * ctx.rank() + to, at::kDouble));
    EXPECT_THAT(wait(call.call(at::cat(sent), splits, splits, "world")), BitEqual(at::cat(expected)));
  });
}

TEST_P(FunctionalOps, Broadcast_NewAndInPlace) {
  on_ranks(ranks, [this](RankContext& ctx) {
    const auto fresh = op<Tensor(const Tensor&, std::int64_t, std::string)>("_c10d_functional::broadcast");
    const auto in_place = op<Tensor&(Tensor&, std::int64_t, std::string)>("_c10d_functional::broadcast_");
    auto input = values({3}, ctx.rank());
    EXPECT_THAT(wait(fresh.call(input, ranks - 1, "world")), BitEqual(values({3}, ranks - 1)));
    EXPECT_THAT(input, BitEqual(values({3}, ctx.rank())));
    wait(in_place.call(input, 1, "world"));
    EXPECT_THAT(input, BitEqual(values({3}, 1)));
  });
}

TEST_P(FunctionalOps, Overlapping_WaitedForInAnyOrder) {
  on_ranks(ranks, [this](RankContext& ctx) {
    const auto reduce = op<Tensor(const Tensor&, std::string, std::string)>("_c10d_functional::all_reduce");
    const auto gather =
        op<Tensor(const Tensor&, std::int64_t, std::string)>("_c10d_functional::all_gather_into_tensor");
    const auto first = reduce.call(values({4}, ctx.rank()), "sum", "world");
    const auto second = gather.call(values({1}, ctx.rank()), ranks, "world");
    const auto third = reduce.call(values({2}, ctx.rank()), "sum", "world");
    EXPECT_THAT(wait(third), BitEqual(sum_of(values_of_all({2}, ranks))));
    EXPECT_THAT(wait(second), BitEqual(at::cat(values_of_all({1}, ranks))));
    EXPECT_THAT(wait(first), BitEqual(sum_of(values_of_all({4}, ranks))));
    EXPECT_THAT(wait(first), BitEqual(sum_of(values_of_all({4}, ranks))));  // a second wait returns at once
  });
}

// Each rank finds its own ProcessGroup under the group's name. On a rank outside the group, the name is unknown.
TEST_P(FunctionalOps, GroupsByName_AreTheRanksOwn) {
  on_ranks(ranks, [this](RankContext& ctx) {
    EXPECT_EQ(c10d::resolve_process_group("world")->getRank(), ctx.rank());
    std::vector<int> even, odd;
    for (int rank = 0; rank < ranks; ++rank) (rank % 2 == 0 ? even : odd).push_back(rank);
    const Group evens = ctx.new_group(even, "even");
    const Group odds = ctx.new_group(odd, "odd");
    const bool is_even = ctx.rank() % 2 == 0;
    const auto& mine = is_even ? evens : odds;
    EXPECT_EQ(c10d::resolve_process_group(is_even ? "even" : "odd").get(), mine.get().get());
    EXPECT_THROW(c10d::resolve_process_group(is_even ? "odd" : "even"), c10::Error);
    const auto reduce = op<Tensor(const Tensor&, std::string, std::string)>("_c10d_functional::all_reduce");
    const auto sum = wait(reduce.call(at::full({}, 1), "sum", is_even ? "even" : "odd"));
    EXPECT_EQ(sum.item<int>(), static_cast<int>(is_even ? even.size() : odd.size()));
  });
  EXPECT_THROW(c10d::resolve_process_group("world"), c10::Error);  // the world is gone, and its groups with it
}

TEST_P(FunctionalOps, Coalesced) {
  using Tensors = std::vector<Tensor>;
  on_ranks(ranks, [this](RankContext& ctx) {
    const auto reduce = op<Tensors(Tensors, std::string, std::string)>("_c10d_functional::all_reduce_coalesced");
    const auto reduce_in_place =
        op<Tensors(Tensors, std::string, std::string)>("_c10d_functional::all_reduce_coalesced_");
    const auto gather =
        op<Tensors(Tensors, std::int64_t, std::string)>("_c10d_functional::all_gather_into_tensor_coalesced");
    const auto scatter = op<Tensors(Tensors, std::string, std::int64_t, std::string)>(
        "_c10d_functional::reduce_scatter_tensor_coalesced");
    const std::vector<std::vector<std::int64_t>> sizes{{ranks, 2}, {3 * ranks}, {ranks, 1, 4}};
    Tensors inputs;
    for (const auto& size : sizes) inputs.push_back(values(size, ctx.rank()));
    Tensors changed;
    for (const Tensor& input : inputs) changed.push_back(input.clone());
    const Tensors sums = reduce.call(inputs, "sum", "world"), gathered = gather.call(inputs, ranks, "world");
    const Tensors parts = scatter.call(inputs, "sum", ranks, "world");
    reduce_in_place.call(changed, "sum", "world");
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const auto all = values_of_all(sizes[i], ranks);
      EXPECT_THAT(wait(parts[i]), BitEqual(sum_of(all).tensor_split(ranks)[static_cast<std::size_t>(ctx.rank())]));
      EXPECT_THAT(wait(gathered[i]), BitEqual(at::cat(all)));
      EXPECT_THAT(wait(sums[i]), BitEqual(sum_of(all)));
      EXPECT_THAT(wait(changed[i]), BitEqual(sum_of(all)));
      EXPECT_THAT(inputs[i], BitEqual(values(sizes[i], ctx.rank())));
    }
  });
}

TEST_P(FunctionalOps, WaitTensors_WaitsForEach) {
  using Tensors = std::vector<Tensor>;
  if (!c10::Dispatcher::singleton().findSchema({"_c10d_functional::wait_tensors", ""}))
    GTEST_SKIP() << "LibTorch has this operator since 2.15";
  on_ranks(ranks, [this](RankContext& ctx) {
    const auto reduce = op<Tensor(const Tensor&, std::string, std::string)>("_c10d_functional::all_reduce");
    const auto wait_all = op<Tensors(Tensors)>("_c10d_functional::wait_tensors");
    const Tensors sums = {reduce.call(values({4}, ctx.rank()), "sum", "world"), at::ones({1}),
                          reduce.call(values({2}, ctx.rank()), "sum", "world")};
    const Tensors waited = wait_all.call(sums);
    ASSERT_EQ(waited.size(), 3u);
    EXPECT_THAT(waited[0], BitEqual(sum_of(values_of_all({4}, ranks))));
    EXPECT_THAT(waited[1], BitEqual(at::ones({1})));
    EXPECT_THAT(waited[2], BitEqual(sum_of(values_of_all({2}, ranks))));
    for (std::size_t i = 0; i < sums.size(); ++i) EXPECT_TRUE(waited[i].is_same(sums[i])) << i;
    EXPECT_THROW(wait_all.call({}), c10::Error);
  });
}

INSTANTIATE_TEST_SUITE_P(ranks, FunctionalOps, ::testing::Values(2, 3, 8, 64));

TEST(FunctionalOpErrors, UnknownNames_AreRefused) {
  on_ranks(2, [](RankContext&) {
    const auto reduce = op<Tensor(const Tensor&, std::string, std::string)>("_c10d_functional::all_reduce");
    EXPECT_THROW(reduce.call(at::ones({1}), "sum", "nobody"), c10::Error);
    EXPECT_THROW(reduce.call(at::ones({1}), "median", "world"), c10::Error);
    const auto plain = at::ones({2});
    EXPECT_TRUE(wait(plain).is_same(plain));
  });
}

TEST(FunctionalOpErrors, DifferentCalls_AreAMismatch) {
  World world({.ranks = 3});
  const Report report = world.run([](RankContext& ctx) {
    const auto reduce = op<Tensor(const Tensor&, std::string, std::string)>("_c10d_functional::all_reduce");
    wait(reduce.call(at::ones({ctx.rank() == 2 ? 3 : 2}), "sum", "world"));
  });
  EXPECT_EQ(report.verdict, Verdict::mismatch);
  ASSERT_EQ(report.differences.size(), 1u);
  const Difference& difference = report.differences[0];
  EXPECT_EQ(difference.first.fingerprint, "allreduce(sum, float32[2], cpu)");
  EXPECT_EQ(difference.first.ranks, (std::vector{0, 1}));
  EXPECT_EQ(difference.second.fingerprint, "allreduce(sum, float32[3], cpu)");
  EXPECT_EQ(difference.second.ranks, std::vector{2});
  EXPECT_TRUE(difference.others.empty());
  ASSERT_EQ(difference.fields.size(), 1u);
  EXPECT_EQ(difference.fields[0].name, "shape");
  EXPECT_EQ(difference.fields[0].first, "[2]");
  EXPECT_EQ(difference.fields[0].second, "[3]");
}

}  // namespace
}  // namespace rehearse::comm
