// SPDX-License-Identifier: BSD-3-Clause
// Functions with c10d's in-place calls run compiled and in eager mode. In both modes, results must have the same bits,
// and each rank must make the same number of calls.
#include <functional>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include <rehearse/comm/functional.h>
#include <rehearse/compile/compile.h>
#include <rehearse/compile/watch.h>
#include <rehearse/sim/report_writers.h>
#include <rehearse/sim/world.h>

#include "bit_equal.h"

// These tests are outside namespace rehearse, because without line tables, reports take the functions of that namespace
// for library code.
namespace {

using namespace rehearse;
using namespace rehearse::compiler;
using rehearse::test::BitEqual;

using Tensors = std::vector<at::Tensor>;
using Code = std::function<Tensors(const at::Tensor&, const Group&)>;

struct Case {
  std::string name;
  Code code;
};

Tensors like(const at::Tensor& x, int count) {
  Tensors tensors;
  for (int i = 0; i < count; ++i) tensors.push_back(at::zeros_like(x) - i);
  return tensors;
}

Tensors gather_to_one(const at::Tensor& x, const Group& group, int root) {
  c10d::GatherOptions options;
  options.rootRank = root;
  std::vector<Tensors> outputs;
  if (group.rank() == root) outputs.push_back(like(x, group.size()));
  Tensors inputs = {x * 2};
  group->gather(outputs, inputs, options)->wait();
  return outputs.empty() ? inputs : outputs.front();
}

Tensors scatter_from_one(const at::Tensor& x, const Group& group, int root) {
  c10d::ScatterOptions options;
  options.rootRank = root;
  std::vector<Tensors> inputs;
  if (group.rank() == root) {
    inputs.emplace_back();
    for (int i = 0; i < group.size(); ++i) inputs.front().push_back(x * (i + 1));
  }
  Tensors outputs = {at::zeros_like(x)};
  group->scatter(outputs, inputs, options)->wait();
  return outputs;
}

Tensors send_around(const at::Tensor& x, const Group& group) {
  const int next = (group.rank() + 1) % group.size();
  const int before = (group.rank() + group.size() - 1) % group.size();
  at::Tensor sent = x.sin(), received = at::zeros_like(x);
  const Work send = group.send(sent, next, 3);
  group.recv(received, before, 3)->wait();
  send->wait();
  return {received + 1, sent};
}

std::vector<Case> cases() {
  return {
      {"AllReduce",
       [](const at::Tensor& x, const Group& group) {
         at::Tensor sum = x * 3, greatest = x.exp();
         group.allreduce(sum)->wait();
         group.allreduce(greatest, c10d::ReduceOp::MAX)->wait();
         return Tensors{sum / group.size(), greatest};
       }},
      {"AllReduceOfAView",
       [](const at::Tensor& x, const Group& group) {
         at::Tensor all = x * 3;
         group.allreduce(all.narrow(0, 1, 2))->wait();
         return Tensors{all, all + 1};
       }},
      {"AllReduceCoalesced",
       [](const at::Tensor& x, const Group& group) {
         Tensors both = {x * 3, x.sum(0)};
         group->allreduce_coalesced(both)->wait();
         return Tensors{both[0] + 1, both[1]};
       }},
      {"Broadcast",
       [](const at::Tensor& x, const Group& group) {
         at::Tensor mine = x + group.rank();
         group.broadcast(mine, group.size() - 1)->wait();
         return Tensors{mine * 2};
       }},
      {"Reduce",
       [](const at::Tensor& x, const Group& group) {
         at::Tensor sum = x * 5;
         group.reduce(sum, 1)->wait();
         return Tensors{group.rank() == 1 ? sum : x * 7};
       }},
      {"AllGather",
       [](const at::Tensor& x, const Group& group) {
         Tensors outputs = like(x, group.size());
         group.allgather(outputs, x * 2)->wait();
         return Tensors{at::stack(outputs), outputs.front() + 1};
       }},
      {"AllGatherBase",
       [](const at::Tensor& x, const Group& group) {
         at::Tensor all = at::zeros({group.size() * 4, 6}), mine = x * 2;
         group->_allgather_base(all, mine)->wait();
         return Tensors{all.relu()};
       }},
      {"ReduceScatter",
       [](const at::Tensor& x, const Group& group) {
         at::Tensor mine = at::zeros_like(x);
         Tensors parts;
         for (int i = 0; i < group.size(); ++i) parts.push_back(x * i);
         group.reduce_scatter(mine, parts)->wait();
         return Tensors{mine - 1};
       }},
      {"ReduceScatterBase",
       [](const at::Tensor& x, const Group& group) {
         at::Tensor mine = at::zeros({4 / group.size(), 6}), all = x * 2;
         group->_reduce_scatter_base(mine, all)->wait();
         return Tensors{mine.cos()};
       }},
      {"AllToAllBase",
       [](const at::Tensor& x, const Group& group) {
         at::Tensor mine = at::zeros_like(x);
         group.alltoall(mine, x * 2)->wait();
         return Tensors{mine + x};
       }},
      {"AllToAllUneven",
       [](const at::Tensor& x, const Group& group) {
         // Rank r sends r + 1 rows to each rank.
         const int rows = group.rank() + 1;
         std::vector<std::int64_t> sent(static_cast<std::size_t>(group.size()), rows), received;
         for (int i = 0; i < group.size(); ++i) received.push_back(i + 1);
         at::Tensor input = x.sum(0).expand({rows * group.size(), 6}).contiguous();
         at::Tensor mine = at::zeros({group.size() * (group.size() + 1) / 2, 6});
         group.alltoall(mine, input, received, sent)->wait();
         return Tensors{mine};
       }},
      {"Gather", [](const at::Tensor& x, const Group& group) { return gather_to_one(x, group, 1); }},
      {"Scatter", [](const at::Tensor& x, const Group& group) { return scatter_from_one(x, group, 1); }},
      {"Barrier",
       [](const at::Tensor& x, const Group& group) {
         group.barrier()->wait();
         return Tensors{x + 1};
       }},
      {"SendAndReceive", send_around},
      {"AnInput",
       [](const at::Tensor& x, const Group& group) {
         group.allreduce(x)->wait();
         return Tensors{x + 1};
       }},
      {"FoldsWhatAGroupIs",
       [](const at::Tensor& x, const Group& group) {
         return Tensors{x * group.size() + group.rank(), x + static_cast<std::int64_t>(group->getGroupName().size())};
       }},
      {"WithAFunctionalOne",
       [](const at::Tensor& x, const Group& group) {
         at::Tensor sum = functional::all_reduce(x, group);
         group.allreduce(sum)->wait();
         return Tensors{sum, functional::all_reduce(sum, group)};
       }},
  };
}

at::Tensor input_of(int rank, int call) { return at::arange(24, at::kFloat).reshape({4, 6}) / 7 + rank * 3 - call; }

class CallsInPlace : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Of, CallsInPlace, testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

// The number of calls that this rank has made on the group.
std::uint64_t calls_on(const Group& group) {
  return group->getBackend(c10::DeviceType::CPU)->getSequenceNumberForGroup();
}

TEST_P(CallsInPlace, GiveTheBitsOfTheCode) {
  const Code& code = GetParam().code;
  for (const char* backend : {"eager", "aot_eager"}) {
    for (const int ranks : {2, 4}) {
      const auto report = World({.ranks = ranks, .seed = 5}).run([&](RankContext& ctx) {
        auto compiled = compile(code, {.backend = backend, .fullgraph = true});
        for (int call = 0; call < 3; ++call) {
          at::Tensor x = input_of(ctx.rank(), call), of_eager = x.clone();
          const auto before = calls_on(ctx.group());
          const Tensors expected = code(of_eager, ctx.group());
          const auto by_code = calls_on(ctx.group()) - before;
          const Tensors found = compiled(x, ctx.group());
          EXPECT_EQ(calls_on(ctx.group()) - before - by_code, by_code);
          EXPECT_THAT(found, BitEqual(expected));
          EXPECT_THAT(x, BitEqual(of_eager));
        }
        EXPECT_EQ(compiled.stats().compiles, 1);
        EXPECT_EQ(compiled.stats().hits, 2);
      });
      EXPECT_EQ(report.verdict, Verdict::ok) << backend << '\n' << sim::to_text(report);
      EXPECT_THAT(report.remarks, testing::IsEmpty());
    }
  }
}

TEST(CallsInPlaceMore, ABufferOfAModule_IsWritten) {
  struct Mean : torch::nn::Module {
    explicit Mean(Group group) : group(std::move(group)) { seen = register_buffer("seen", at::zeros({6})); }
    at::Tensor forward(const at::Tensor& x) {
      seen.copy_(x.sum(0));
      watch(group).allreduce(seen)->wait();
      return x - seen;
    }
    Group group;
    at::Tensor seen;
  };
  const auto report = World({.ranks = 2}).run([](RankContext& ctx) {
    const auto net = std::make_shared<Mean>(ctx.group()), eager = std::make_shared<Mean>(ctx.group());
    auto compiled = compile(net, {.fullgraph = true});
    for (int call = 0; call < 3; ++call) {
      const at::Tensor x = input_of(ctx.rank(), call);
      EXPECT_THAT(compiled(x), BitEqual(eager->forward(x)));
      EXPECT_THAT(net->seen, BitEqual(eager->seen));
    }
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << sim::to_text(report);
}

// Guards compare groups by identity, so another group gets another graph.
TEST(CallsInPlaceMore, AnotherGroup_CompilesAnew) {
  const auto report = World({.ranks = 2}).run([](RankContext& ctx) {
    const Group other = ctx.new_group({1, 0}, "turned");
    auto compiled = compile(
        [](const at::Tensor& x, const Group& group) {
          at::Tensor mine = x * (group.rank() + 1);
          group.broadcast(mine)->wait();
          return mine;
        },
        {.fullgraph = true});
    const at::Tensor x = at::ones({2}) * (ctx.rank() + 1);
    EXPECT_EQ(compiled(x, ctx.group())[0].item<float>(), 1);
    EXPECT_EQ(compiled(x, other)[0].item<float>(), 2);
    EXPECT_EQ(compiled(x, ctx.group())[0].item<float>(), 1);
    EXPECT_EQ(compiled.stats().compiles, 2);
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << sim::to_text(report);
}

TEST(CallsInPlaceMore, ASizeThatVaries_StaysASymbol) {
  const auto report = World({.ranks = 2}).run([](RankContext& ctx) {
    const Group group = ctx.group();
    const auto code = [group](const at::Tensor& x) {
      at::Tensor sum = x * 2;
      group.allreduce(sum)->wait();
      return sum;
    };
    auto compiled = compile(code, {.fullgraph = true});
    for (const int rows : {4, 5, 6, 7}) {
      const at::Tensor x = at::arange(rows * 2, at::kFloat).view({rows, 2}) + ctx.rank();
      EXPECT_THAT(compiled(x), BitEqual(code(x)));
    }
    EXPECT_EQ(compiled.stats().compiles, 2);
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << sim::to_text(report);
}

TEST(CallsInPlaceMore, Gradients_PassWhereTheCodeLetsThem) {
  const auto report = World({.ranks = 2}).run([](RankContext& ctx) {
    const Group group = ctx.group();
    const auto code = [group](const at::Tensor& x) {
      at::Tensor scale = x.detach().abs().sum();
      group.allreduce(scale)->wait();
      return (x * x / scale).sum();
    };
    auto compiled = compile(code, {.fullgraph = true});
    for (int call = 0; call < 2; ++call) {
      const at::Tensor x = input_of(ctx.rank(), call).requires_grad_(), y = x.detach().clone().requires_grad_();
      code(y).backward();
      compiled(x).backward();
      EXPECT_THAT(x.grad(), BitEqual(y.grad()));
    }
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << sim::to_text(report);
}

}  // namespace
