// SPDX-License-Identifier: BSD-3-Clause
// Contract: functional.h gives the values and gradients that one process gets when it computes all ranks' parts with
// ordinary tensors. All numbers are small integers, or such integers divided by four, so results are equal, not just
// close.
#include <rehearse/comm/functional.h>

#include <torch/csrc/autograd/function.h>

#include <rehearse_internal/libtorch/nodes.h>

#include "bit_equal.h"
#include "core/comm/whole_world.h"

namespace rehearse::comm {
namespace {

using at::Tensor;
using rehearse::test::BitEqual;
using Tensors = std::vector<Tensor>;

Tensor weights(at::IntArrayRef sizes, int rank) {
  return at::remainder(at::arange(c10::multiply_integers(sizes), at::kDouble) * 3 + rank, 7).view(sizes);
}

class Functional : public ::testing::TestWithParam<int> {
 protected:
  // Rank r computes `collective(x_r)` with x_r = values(sizes, r), and the gradient of the sum of all ranks' weighted
  // results. Both must equal those of `reference`, which gets all inputs and returns all results.
  void compare(at::IntArrayRef sizes, const std::function<Tensor(const Tensor&, const RankContext&)>& collective,
               const std::function<Tensors(const Tensors&)>& reference) {
    Tensors inputs;
    for (const Tensor& value : values_of_all(sizes, ranks)) inputs.push_back(value.requires_grad_());
    const Tensors expected = reference(inputs);
    Tensor loss = at::zeros({}, at::kDouble);
    for (int rank = 0; rank < ranks; ++rank)
      loss = loss + (expected[rank] * weights(expected[rank].sizes(), rank)).sum();
    loss.backward();
    on_ranks(ranks, [&](RankContext& ctx) {
      const auto rank = static_cast<std::size_t>(ctx.rank());
      const Tensor input = values(sizes, ctx.rank()).requires_grad_();
      const Tensor result = collective(input, ctx);
      EXPECT_THAT(result, BitEqual(expected[rank]));
      (result * weights(result.sizes(), ctx.rank())).sum().backward();
      const Tensor& wanted = inputs[rank].grad();  // undefined if no rank's result depends on this input
      EXPECT_THAT(input.grad(), BitEqual(wanted.defined() ? wanted : at::zeros_like(input)));
      at::NoGradGuard no_grad;
      EXPECT_THAT(collective(values(sizes, ctx.rank()), ctx), BitEqual(expected[rank]));
    });
  }

  const int ranks = GetParam();
};

TEST_P(Functional, AllReduce) {
  const auto sums = [this](const Tensors& xs) {
    return Tensors(static_cast<std::size_t>(ranks), at::stack(xs).sum(0));
  };
  compare({3, 2}, [](const Tensor& x, const RankContext& ctx) { return functional::all_reduce(x, ctx.group()); }, sums);
  compare(
      {2, 3}, [](const Tensor& x, const RankContext& ctx) { return functional::all_reduce(x.t(), ctx.group()).t(); },
      sums);
}

TEST_P(Functional, Broadcast) {
  for (const int root : {0, ranks - 1}) {
    compare(
        {4}, [=](const Tensor& x, const RankContext& ctx) { return functional::broadcast(x, ctx.group(), root); },
        [&](const Tensors& xs) {
          return Tensors(static_cast<std::size_t>(ranks), xs[static_cast<std::size_t>(root)]);
        });
  }
}

// A node in rank 0's backward that has no gradient to pass on.
struct NoGradient : torch::autograd::Node {
  torch::autograd::variable_list apply(torch::autograd::variable_list&&) override { return {Tensor()}; }
};

TEST_P(Functional, AllReduce_UndefinedGradient_IsZerosForTheOthers) {
  on_ranks(ranks, [&](RankContext& ctx) {
    const Tensor input = values({2}, ctx.rank()).requires_grad_();
    Tensor result = functional::all_reduce(input, ctx.group());
    if (ctx.rank() == 0) {
      const auto node = libtorch::make_node<NoGradient>();
      node->set_next_edges(torch::autograd::collect_next_edges(result));
      result = result.detach();
      torch::autograd::create_gradient_edge(result, node);
    }
    result.sum().backward();
    EXPECT_THAT(input.grad(), BitEqual(at::full({2}, ranks - 1, at::kDouble)));
  });
}

TEST_P(Functional, AllGather_AlongEachDimension) {
  for (const int dim : {0, 1, -1}) {
    compare(
        {2, 3, 1},
        [=](const Tensor& x, const RankContext& ctx) { return functional::all_gather_tensor(x, ctx.group(), dim); },
        [&](const Tensors& xs) { return Tensors(static_cast<std::size_t>(ranks), at::cat(xs, dim)); });
  }
}

TEST_P(Functional, ReduceScatter_AlongEachDimension) {
  for (const int dim : {0, 1}) {
    compare(
        {2 * ranks, ranks},
        [=](const Tensor& x, const RankContext& ctx) {
          return functional::reduce_scatter_tensor(x, ctx.group(), "sum", dim);
        },
        [&](const Tensors& xs) { return at::stack(xs).sum(0).tensor_split(ranks, dim); });
  }
}

TEST_P(Functional, AllToAll_Even) {
  compare(
      {2 * ranks, 2},
      [](const Tensor& x, const RankContext& ctx) { return functional::all_to_all_single(x, ctx.group()); },
      [&](const Tensors& xs) {
        Tensors results;
        for (int to = 0; to < ranks; ++to) {
          Tensors parts;
          for (const Tensor& x : xs) parts.push_back(x.slice(0, 2 * to, 2 * to + 2));
          results.push_back(at::cat(parts));
        }
        return results;
      });
}

TEST_P(Functional, AllToAll_Uneven) {
  const auto rows = [this](int to) { return to == ranks - 1 ? 2 : to == ranks - 2 ? 0 : 1; };
  compare(
      {ranks, 3},
      [&](const Tensor& x, const RankContext& ctx) {
        std::vector<std::int64_t> in, out;
        for (int other = 0; other < ranks; ++other) {
          in.push_back(rows(other));
          out.push_back(rows(ctx.rank()));
        }
        return functional::all_to_all_single(x, ctx.group(), out, in);
      },
      [&](const Tensors& xs) {
        Tensors results;
        std::int64_t first = 0;
        for (int to = 0; to < ranks; ++to) {
          Tensors parts;
          for (const Tensor& x : xs) parts.push_back(x.slice(0, first, first + rows(to)));
          first += rows(to);
          results.push_back(at::cat(parts));
        }
        return results;
      });
}

// Two layers whose columns are divided among the ranks. With many more ranks, the numbers would exceed the integers
// that a double holds exactly.
class FunctionalLayers : public Functional {};

TEST_P(FunctionalLayers, ShardedLayers_GradientsOfAll) {
  const auto weight = [this](int rank) { return weights({2, 2 * ranks}, rank); };
  const auto layer = [&](const Tensor& whole, int rank) { return at::relu(whole.matmul(weight(rank)) - 3); };
  compare(
      {1, 2},
      [&](const Tensor& x, const RankContext& ctx) {
        Tensor state = x;
        for (int depth = 0; depth < 2; ++depth) {
          const auto whole = functional::all_gather_tensor(state, ctx.group());
          state = functional::reduce_scatter_tensor(layer(whole, ctx.rank()), ctx.group(), "sum", 1);
          state = functional::all_reduce(state.sum(0, true), ctx.group());
        }
        return state;
      },
      [&](const Tensors& xs) {
        Tensors states = xs;
        for (int depth = 0; depth < 2; ++depth) {
          const auto whole = at::cat(states);
          Tensors outputs;
          for (int rank = 0; rank < ranks; ++rank) outputs.push_back(layer(whole, rank));
          Tensors parts = at::stack(outputs).sum(0).tensor_split(ranks, 1);
          for (Tensor& part : parts) part = part.sum(0, true);
          states.assign(static_cast<std::size_t>(ranks), at::stack(parts).sum(0));
        }
        return states;
      });
}

INSTANTIATE_TEST_SUITE_P(ranks, Functional, ::testing::Values(2, 3, 4, 8, 64));
INSTANTIATE_TEST_SUITE_P(ranks, FunctionalLayers, ::testing::Values(2, 3, 4, 8));

// The means of four ranks are exact, and so are their gradients.
TEST(FunctionalMeans, GradientsAreMeansToo) {
  on_ranks(4, [](RankContext& ctx) {
    const auto a = values({4}, ctx.rank()).requires_grad_(), b = values({4}, ctx.rank()).requires_grad_();
    const auto mean = functional::all_reduce(a, ctx.group(), "avg");
    EXPECT_THAT(mean, BitEqual(sum_of(values_of_all({4}, 4)) / 4));
    (mean * (ctx.rank() + 1)).sum().backward();
    EXPECT_THAT(a.grad(), BitEqual(at::full({4}, (1 + 2 + 3 + 4) / 4.0, at::kDouble)));
    const auto part = functional::reduce_scatter_tensor(b, ctx.group(), "avg");
    EXPECT_EQ(part.item<double>(), sum_of(values_of_all({4}, 4))[ctx.rank()].item<double>() / 4);
    (part * (ctx.rank() + 1)).sum().backward();
    EXPECT_THAT(b.grad(), BitEqual(at::arange(1, 5, at::kDouble) / 4));
  });
}

TEST(FunctionalErrors, NameWhatIsWrong) {
  on_ranks(2, [](RankContext& ctx) {
    const auto& group = ctx.group().get();
    const auto message = [](const std::function<void()>& call) -> std::string {
      try {
        call();
      } catch (const c10::ValueError& error) {
        return error.what_without_backtrace();
      }
      return "no ValueError";
    };
    const auto three = at::ones({3});
    EXPECT_EQ(message([&] { functional::all_reduce(three, {}); }),
              "all_reduce: the group is null; is this rank no member of it?");
    EXPECT_EQ(message([&] { functional::broadcast(three, group, 2); }),
              "broadcast: root is 2; the group has ranks 0 to 1");
    EXPECT_EQ(message([&] { functional::all_gather_tensor(at::ones({}), group); }),
              "all_gather_tensor: the input has no dimension to gather along");
    EXPECT_EQ(message([&] { functional::reduce_scatter_tensor(three, group); }),
              "reduce_scatter_tensor: dimension 0 of the input has size 3; it must be divisible by the 2 ranks of the "
              "group");
    EXPECT_EQ(message([&] { functional::all_to_all_single(three, group); }),
              "all_to_all_single: the input has 3 rows; without splits they must be divisible by the 2 ranks of the "
              "group");
    EXPECT_EQ(message([&] { functional::all_to_all_single(three, group, {3}, {1, 2}); }),
              "all_to_all_single: output_splits has 1 entries; a group of 2 needs one for each rank");
    EXPECT_EQ(message([&] { functional::all_to_all_single(three, group, {1, 1}, {1, 1}); }),
              "all_to_all_single: input_splits add up to 2; the input has 3 rows");
    EXPECT_EQ(message([&] { functional::all_to_all_single(three, group, {-1, 1}, {1, 2}); }),
              "all_to_all_single: output_splits has -1; it must not be negative");
    const auto wants_gradient = at::ones({2}).requires_grad_();
    EXPECT_THROW(functional::all_reduce(wants_gradient, group, "max"), c10::NotImplementedError);
    EXPECT_THROW(functional::reduce_scatter_tensor(wants_gradient, group, "min"), c10::NotImplementedError);
  });
}

}  // namespace
}  // namespace rehearse::comm
