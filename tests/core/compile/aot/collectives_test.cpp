// SPDX-License-Identifier: BSD-3-Clause
// Collectives inside a compiled function are nodes of its forward and backward graphs. On each rank, results and
// gradients have the same bits with aot_eager, with the "eager" back end and without compile().
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/comm/functional.h>
#include <rehearse/compile/compile.h>
#include <rehearse/sim/world.h>
#include <rehearse_internal/compile/aot_eager.h>

#include "bit_equal.h"
#include "core/parallel/ddp_fixture.h"
#include "kit/boxed_op.h"

namespace rehearse::compiler {
namespace {

using at::Tensor;
using rehearse::test::BitEqual;
using Splits = c10::SymIntArrayRef;

template <class Signature>
auto op_of(const std::string& name) {
  return rehearse::test::BoxedOp<Signature>(name);
}

Tensor wait(const Tensor& tensor) { return op_of<Tensor(const Tensor&)>("_c10d_functional::wait_tensor").call(tensor); }

Tensor all_reduce(const Tensor& x, const Group& group) {
  const auto op = op_of<Tensor(const Tensor&, std::string, std::string)>("_c10d_functional::all_reduce");
  return op.call(x, "sum", group->getGroupName());
}

Tensor broadcast(const Tensor& x, std::int64_t root, const Group& group) {
  const auto op = op_of<Tensor(const Tensor&, std::int64_t, std::string)>("_c10d_functional::broadcast");
  return op.call(x, root, group->getGroupName());
}

Tensor all_gather(const Tensor& x, const Group& group) {
  const auto op = op_of<Tensor(const Tensor&, std::int64_t, std::string)>("_c10d_functional::all_gather_into_tensor");
  return op.call(x, group->getSize(), group->getGroupName());
}

Tensor reduce_scatter(const Tensor& x, const Group& group) {
  const auto op =
      op_of<Tensor(const Tensor&, std::string, std::int64_t, std::string)>("_c10d_functional::reduce_scatter_tensor");
  return op.call(x, "sum", group->getSize(), group->getGroupName());
}

std::vector<Tensor> all_reduce_coalesced(std::vector<Tensor> tensors, const Group& group) {
  const auto op = op_of<std::vector<Tensor>(std::vector<Tensor>, std::string, std::string)>(
      "_c10d_functional::all_reduce_coalesced");
  return op.call(std::move(tensors), "sum", group->getGroupName());
}

std::vector<c10::SymInt> even_splits(const Tensor& x, const Group& group) {
  return std::vector<c10::SymInt>(static_cast<std::size_t>(group->getSize()), x.sym_size(0) / group->getSize());
}

using Function = Tensor (*)(const Tensor& x, const Tensor& weight, const Group& group);

// Returns the result and the gradients of x and of the weight.
template <class Callable>
std::vector<Tensor> run(Callable& callable, const Group& group, std::int64_t rows) {
  const Tensor x = (at::arange(rows * 3, at::kFloat).view({rows, 3}) + group->getRank()).requires_grad_();
  const Tensor weight = at::full({3, 3}, 0.3 + group->getRank()).requires_grad_();
  const Tensor result = callable(x, weight, group);
  (result * result).sum().backward();
  return {result, x.grad(), weight.grad()};
}

// Runs `function` on 2 and 4 ranks. The first call compiles for one number of rows, and the second one for any number.
void expect_like_eager(Function function) {
  for (const int ranks : {2, 4}) {
    rehearse_test::run_ranks({.ranks = ranks}, [function](RankContext& ctx) {
      const auto aot = std::make_shared<AotEagerBackend>();
      auto compiled = compile(function, {.backend = aot, .fullgraph = true});
      auto eager = compile(function, {.backend = "eager", .fullgraph = true});
      for (const std::int64_t rows : {4, 8, 12}) {
        const auto mine = run(compiled, ctx.group(), rows), expected = run(eager, ctx.group(), rows);
        const Function plain = function;
        EXPECT_THAT(mine, BitEqual(expected));
        EXPECT_THAT(mine, BitEqual(run(plain, ctx.group(), rows)));
      }
      EXPECT_EQ(compiled.stats().compiles, 2);
      for (const auto& graph : aot->graphs()) EXPECT_EQ(graph->eager_because, "");
    });
  }
}

TEST(AotCollectives, AllReduce) {
  expect_like_eager(+[](const Tensor& x, const Tensor& weight, const Group& group) {
    return at::matmul(x, weight) * wait(all_reduce(x.detach(), group));
  });
}

// LibTorch has no gradients for the collectives of this test and the next three, and warns about it. Some copy their
// input, and the gradient passes through the copy. The others stop the gradient.
TEST(AotCollectives, AllReduceOfWhatRequiresAGradient) {
  expect_like_eager(+[](const Tensor& x, const Tensor& weight, const Group& group) {
    return at::matmul(x, weight) * wait(all_reduce(x * 2, group));
  });
}

TEST(AotCollectives, OthersOfWhatRequiresAGradient) {
  expect_like_eager(+[](const Tensor& x, const Tensor& weight, const Group& group) {
    const Tensor product = at::matmul(x, weight);
    const Tensor part = wait(reduce_scatter(wait(all_gather(x * 2, group)), group));
    return product * wait(broadcast(product.sin(), 1, group)) + part;
  });
}

TEST(AotCollectives, CoalescedOfWhatRequiresAGradient) {
  expect_like_eager(+[](const Tensor& x, const Tensor& weight, const Group& group) {
    const auto sums = all_reduce_coalesced({at::matmul(x, weight), x * 2}, group);
    return wait(sums[0]) * wait(sums[1]);
  });
}

TEST(AotCollectives, InPlaceOfWhatRequiresAGradient) {
  expect_like_eager(+[](const Tensor& x, const Tensor& weight, const Group& group) {
    const auto reduce = op_of<Tensor&(Tensor&, std::string, std::string)>("_c10d_functional::all_reduce_");
    Tensor product = at::matmul(x, weight);
    return wait(reduce.call(product, "sum", group->getGroupName())).cos() * x;
  });
}

TEST(AotCollectives, InPlace) {
  expect_like_eager(+[](const Tensor& x, const Tensor& weight, const Group& group) {
    const auto reduce = op_of<Tensor&(Tensor&, std::string, std::string)>("_c10d_functional::all_reduce_");
    const auto broadcast = op_of<Tensor&(Tensor&, std::int64_t, std::string)>("_c10d_functional::broadcast_");
    Tensor sum = x.detach() + 1, first = x.detach() * 2;
    wait(reduce.call(sum, "max", group->getGroupName()));
    wait(broadcast.call(first, 1, group->getGroupName()));
    return at::matmul(x * sum, weight) + first;
  });
}

TEST(AotCollectives, BroadcastGatherAndScatter) {
  expect_like_eager(+[](const Tensor& x, const Tensor& weight, const Group& group) {
    const Tensor data = x.detach();
    const Tensor part = wait(reduce_scatter(wait(all_gather(data, group)), group));
    return at::matmul(x, weight) * wait(broadcast(data, 0, group)) * part;
  });
}

TEST(AotCollectives, AllToAll) {
  expect_like_eager(+[](const Tensor& x, const Tensor& weight, const Group& group) {
    const auto exchange =
        op_of<Tensor(const Tensor&, Splits, Splits, std::string)>("_c10d_functional::all_to_all_single");
    const std::vector<c10::SymInt> splits = even_splits(x, group);
    const Tensor data = x.detach();
    return at::matmul(x, weight) * wait(exchange.call(data, splits, splits, group->getGroupName()));
  });
}

TEST(AotCollectives, Coalesced) {
  expect_like_eager(+[](const Tensor& x, const Tensor& weight, const Group& group) {
    const auto sums = all_reduce_coalesced({x.detach(), x.detach() * 2}, group);
    return at::matmul(x, weight) * wait(sums[0]) + wait(sums[1]);
  });
}

TEST(AotCollectives, OneWaitForSeveral) {
  if (!c10::Dispatcher::singleton().findSchema({"_c10d_functional::wait_tensors", ""}))
    GTEST_SKIP() << "LibTorch has this operator since 2.15";
  expect_like_eager(+[](const Tensor& x, const Tensor& weight, const Group& group) {
    const auto wait_all = op_of<std::vector<Tensor>(std::vector<Tensor>)>("_c10d_functional::wait_tensors");
    const auto sums = wait_all.call({all_reduce(x.detach(), group), broadcast(x.detach() * 2, 1, group)});
    return at::matmul(x, weight) * sums[0] + sums[1];
  });
}

// The operators of _c10d_functional_autograd have gradients, and these gradients are collectives, too.
TEST(AotCollectives, Gradients) {
  expect_like_eager(+[](const Tensor& x, const Tensor& weight, const Group& group) {
    const auto gather = op_of<Tensor(const Tensor&, std::int64_t, const std::string&)>(
        "_c10d_functional_autograd::all_gather_into_tensor");
    const auto scatter = op_of<Tensor(const Tensor&, const std::string&, std::int64_t, const std::string&)>(
        "_c10d_functional_autograd::reduce_scatter_tensor");
    const auto exchange = op_of<Tensor(const Tensor&, Splits, Splits, const std::string&)>(
        "_c10d_functional_autograd::all_to_all_single");
    const std::string& name = group->getGroupName();
    const std::vector<c10::SymInt> splits = even_splits(x, group);
    const Tensor whole = wait(gather.call(at::matmul(x, weight), group->getSize(), name));
    const Tensor part = wait(scatter.call(whole.sin(), "sum", group->getSize(), name));
    return wait(exchange.call(part * x, splits, splits, name)).cos();
  });
}

TEST(AotCollectives, FunctionsOfRehearse) {
  expect_like_eager(+[](const Tensor& x, const Tensor& weight, const Group& group) {
    const Tensor data = x.detach();
    return at::matmul(x, weight) * functional::all_reduce(data, group) + functional::broadcast(data, group, 1);
  });
}

}  // namespace
}  // namespace rehearse::compiler
