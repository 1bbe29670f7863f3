// SPDX-License-Identifier: BSD-3-Clause
// Code before a read takes effect once in each call, whether the call compiles, hits, takes another branch, or exceeds
// the recompile limit.
#include <cstdint>
#include <functional>
#include <optional>

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <rehearse/comm/functional.h>
#include <rehearse/compile/compile.h>
#include <rehearse/compile/eager_region.h>
#include <rehearse/compile/watch.h>

#include "bit_equal.h"
#include "core/parallel/ddp_fixture.h"
#include "kit/boxed_op.h"

namespace rehearse::compiler {
namespace {

using rehearse::test::BitEqual;

struct Outside {
  int reductions = 0;
  std::optional<Group> group;
  bool reduces_in_graph = false;  // if true, the code also makes an all-reduce outside the region
};

at::Tensor reduced(const at::Tensor& choice, Outside& outside) {
  ++outside.reductions;
  at::Tensor total = choice.clone();
  if (outside.group) outside.group->allreduce(total)->wait();
  return total;
}

at::Tensor sum_over_ranks(const at::Tensor& x, const Group& group) {
  static const rehearse::test::BoxedOp<at::Tensor(const at::Tensor&, std::string, std::string)> all_reduce(
      "_c10d_functional::all_reduce");
  return functional::wait_tensor(all_reduce.call(x, "sum", group->getGroupName()));
}

// The number of operations that this rank has started on the group.
std::uint64_t operations(const std::optional<Group>& group) {
  return group ? (*group)->getBackend(c10::DeviceType::CPU)->getSequenceNumberForGroup() : 0;
}

struct ChoosingImpl : torch::nn::Module {
  explicit ChoosingImpl(Outside& outside) : outside_(outside) {
    weight = register_parameter("weight", at::arange(6, at::kFloat) / 4);
    steps = register_buffer("steps", at::zeros({}, at::kLong));
  }

  at::Tensor forward(const at::Tensor& x, const at::Tensor& choice) {
    steps.add_(1);
    at::Tensor h = at::dropout(x * weight, 0.5, /*train=*/true);
    if (outside_.reduces_in_graph) h = h + sum_over_ranks(x, watch(*outside_.group));
    const at::Tensor total = eager_region(reduced, choice, std::ref(outside_));
    const at::Tensor g = h * total;
    switch (total.item<std::int64_t>()) {
      case 0:
        return g + h.exp();
      case 12:
        return at::dropout(h, 0.5, true).sin() * steps;
      default:
        return (g - x).relu() + weight;
    }
  }

  at::Tensor weight, steps;
  Outside& outside_;
};
TORCH_MODULE(Choosing);

struct Trained {
  at::Tensor result, gradient, steps, next_random;
};

template <class Call>
Trained trained(Choosing& net, Call& call, std::int64_t choice, std::uint64_t seed) {
  net->weight.mutable_grad().reset();
  at::manual_seed(seed);
  const at::Tensor x = at::arange(6, at::kFloat) - 2;
  Trained after;
  after.result = call(x, at::scalar_tensor(choice, at::kLong));
  after.next_random = at::rand({4});  // equal to eager mode's if the call drew as many random numbers
  after.result.sum().backward();
  after.gradient = net->weight.grad().clone();
  after.steps = net->steps.clone();
  return after;
}

struct Expected {
  std::int64_t choice;  // the sum over the ranks: each rank passes choice / ranks
  std::int64_t compiles, hits, eager_calls;
};

void expect_once(CompileOptions options, int ranks, const std::optional<Group>& group,
                 const std::vector<Expected>& calls) {
  // Only with the "eager" back end, the test puts an all-reduce into the graph itself.
  const bool in_graph = group && options.backend.get()->name() == "eager";
  Outside outside{.group = group, .reduces_in_graph = in_graph}, outside_eager = outside;
  Choosing net(outside), eager(outside_eager);
  auto compiled = compile(net, std::move(options));
  std::uint64_t seed = 100;
  for (const Expected& call : calls) {
    const auto run_eager = [&](const at::Tensor& x, const at::Tensor& choice) { return eager->forward(x, choice); };
    const std::uint64_t at_first = operations(group);
    const Trained expected = trained(eager, run_eager, call.choice / ranks, ++seed);
    const std::uint64_t by_eager = operations(group) - at_first;
    const Trained found = trained(net, compiled, call.choice / ranks, seed);
    EXPECT_EQ(operations(group) - at_first - by_eager, by_eager) << "choice " << call.choice;
    EXPECT_THAT(found.result, BitEqual(expected.result)) << "choice " << call.choice;
    EXPECT_THAT(found.gradient, BitEqual(expected.gradient)) << "choice " << call.choice;
    EXPECT_THAT(found.steps, BitEqual(expected.steps)) << "choice " << call.choice;
    EXPECT_THAT(found.next_random, BitEqual(expected.next_random)) << "choice " << call.choice;
    EXPECT_EQ(outside.reductions, outside_eager.reductions);
    EXPECT_EQ(compiled.stats().compiles, call.compiles);
    EXPECT_EQ(compiled.stats().hits, call.hits);
    EXPECT_EQ(compiled.stats().eager_calls, call.eager_calls);
  }
}

// First call, hit, another branch, a hit of each branch, limit exceeded (twice), hit.
const std::vector<Expected> kCalls = {{0, 1, 0, 0}, {0, 1, 1, 0},  {12, 2, 1, 0}, {12, 2, 2, 0},
                                      {0, 2, 3, 0}, {24, 2, 3, 1}, {24, 2, 3, 2}, {12, 2, 4, 2}};

struct Way {
  const char* backend;
  Verify verify;
};

class Once : public ::testing::TestWithParam<Way> {
 protected:
  static CompileOptions options() {
    return {.backend = GetParam().backend, .verify = GetParam().verify, .recompile_limit = 2};
  }
};
INSTANTIATE_TEST_SUITE_P(Way, Once,
                         ::testing::Values(Way{"eager", Verify::Never}, Way{"eager", Verify::FirstHit},
                                           Way{"eager", Verify::Always}, Way{"aot_eager", Verify::Never},
                                           Way{"aot_eager", Verify::FirstHit}));

TEST_P(Once, WithoutRanks) { expect_once(options(), 1, {}, kCalls); }

TEST_P(Once, OnOneTwoAndFourRanks) {
  for (const int ranks : {1, 2, 4}) {
    const CompileOptions with = options();
    rehearse_test::run_ranks({.ranks = ranks, .seed = 3},
                             [&](RankContext& ctx) { expect_once(with, ranks, Group(ctx.group()), kCalls); });
  }
}

}  // namespace
}  // namespace rehearse::compiler
