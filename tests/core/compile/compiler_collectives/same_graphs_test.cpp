// SPDX-License-Identifier: BSD-3-Clause
// Contract: ranks that compile different graphs under equal guards get one remark, and with .same_graphs an error.
// Ranks whose arguments, sizes, modules, groups or watched values differ get none, and no rank waits for a comparison.
#include <functional>
#include <string>
#include <vector>

#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/csrc/distributed/c10d/Functional.hpp>

#include <rehearse/compile/compile.h>
#include <rehearse/compile/errors.h>
#include <rehearse/compile/watch.h>
#include <rehearse/parallel/distributed_data_parallel.h>
#include <rehearse/parallel/fsdp.h>

#include "core/compile/compiler_collectives/seed_fixture.h"
#include "core/compile/error_of.h"

// These tests are outside namespace rehearse, because without line tables, reports take the functions of that namespace
// for library code.
namespace same_graphs {
namespace {

using namespace rehearse;
using namespace rehearse::compiler;
using testing::Contains;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::Not;

using Body = std::function<void(RankContext&)>;

Report run(int ranks, const Body& body, std::uint64_t seed = 1) {
  auto report = World({.ranks = ranks, .seed = seed}).run(body);
  EXPECT_EQ(report.verdict, Verdict::ok) << sim::to_text(report);
  return report;
}

void expect_silence(const Body& body) {
  for (const int ranks : {2, 3, 8}) {
    EXPECT_THAT(run(ranks, body).remarks, Not(Contains(HasSubstr("different graphs"))));
  }
}

// The graph depends on the rank, and no guard sees the rank.
auto by_rank(bool first) {
  return [first](const at::Tensor& x) {
    if (first) return (x * 2).sin();
    return (x + 3).cos();
  };
}

const char* const kSinCos =
    "rank 0 and ranks? [1-7-]+ compiled different graphs of f: torch\\.ops\\.aten\\.mul\\.Scalar at "
    "same_graphs_test\\.cpp:[0-9]+ in .* on rank 0, torch\\.ops\\.aten\\.add\\.Scalar at .* on ranks? [1-7-]+\\. If .*";

TEST(SameGraphs, GraphsThatDependOnTheRank_AreOneRemark) {
  for (const int ranks : {2, 3, 8}) {
    for (const bool together : {false, true}) {
      const Body body = [&](RankContext& ctx) {
        const auto group = together ? ctx.group() : Group();
        auto f = compile(by_rank(ctx.rank() == 0), {.group = group, .name = "f"});
        for (const int rows : {4, 4, 5, 6, 1}) f(at::ones({rows}));
      };
      const auto remarks = run(ranks, body).remarks;
      EXPECT_THAT(remarks, ElementsAre(MatchesRegex(kSinCos)));
      EXPECT_EQ(run(ranks, body, 2).remarks, remarks);
    }
  }
}

TEST(SameGraphs, RanksOfEqualGraphs_AreNamedTogether) {
  const auto report = run(5, [](RankContext& ctx) { compile(by_rank(ctx.rank() % 2 == 0))(at::ones({4})); });
  EXPECT_THAT(report.remarks,
              ElementsAre(HasSubstr("ranks 0,2,4 and ranks 1,3 compiled different graphs of function: ")));
}

TEST(SameGraphs, SizesAndNumbers_MayDiffer) {
  expect_silence([](RankContext& ctx) {
    auto f = compile([&](const at::Tensor& x) { return (x * ctx.rank() + 0.5 * ctx.rank()).view({-1, x.size(0)}); });
    for (int call = 0; call < 3; ++call) {
      f(at::ones({2 + ctx.rank() + call, 4}));
      f(at::ones({3, 4 + ctx.rank()}));
    }
  });
}

TEST(SameGraphs, BranchOnASize_IsNoDifference) {
  expect_silence([](RankContext& ctx) {
    for (const std::optional<bool> dynamic : {std::optional<bool>(), std::optional<bool>(true)}) {
      auto f = compile([](const at::Tensor& x) { return x.sym_size(0) > 5 ? x.sin() : x.cos(); }, {.dynamic = dynamic});
      f(at::ones({ctx.rank() == 0 ? 4 : 9}));
      f(at::ones({ctx.rank() == 0 ? 3 : 8}));
    }
  });
}

TEST(SameGraphs, GuardsThatDiffer_ExplainTheGraphs) {
  expect_silence([](RankContext& ctx) {
    const bool first = ctx.rank() == 0;
    const int number = ctx.rank();
    compile([](const at::Tensor& x, bool twice) { return twice ? x * 2 : x.sin(); })(at::ones({4}), first);
    compile([&](const at::Tensor& x) { return watch(number) == 0 ? x * 2 : x.sin(); })(at::ones({4}));
    compile([](const at::Tensor& x) { return x.is_floating_point() ? x.sin() : x + 1; })(
        at::ones({4}, first ? at::kFloat : at::kLong));
    const at::AutoGradMode mode(first);
    compile([](const at::Tensor& x) { return at::GradMode::is_enabled() ? x.sin() : x.cos(); })(at::ones({4}));
  });
}

TEST(SameGraphs, RankThatCompilesMore_DiffersFromNone) {
  expect_silence([](RankContext& ctx) {
    torch::nn::Sequential net(torch::nn::Linear(4, 4), torch::nn::Dropout(0.5));
    auto f = compile(net);
    f(at::ones({2, 4}));
    bool alone = false;
    auto g = compile([&](const at::Tensor& x) { return alone ? x.sin() : x.cos(); }, {.verify = Verify::Always});
    for (int call = 0; call < 2; ++call) {
      g(at::ones({4}));
      alone = ctx.rank() == 0;
    }
    if (ctx.rank() != 0) return;
    net->eval();
    f(at::ones({2, 4}));
    compile(by_rank(true))(at::ones({4}));
  });
}

struct StageImpl : torch::nn::Module {
  StageImpl(int layers, bool is_last) : is_last(is_last) {
    for (int i = 0; i < layers; ++i) net->push_back(torch::nn::Linear(4, 4));
    register_module("net", net);
  }
  at::Tensor forward(const at::Tensor& x) { return is_last ? net->forward(x).log_softmax(1) : net->forward(x).relu(); }
  torch::nn::Sequential net;
  bool is_last;
};
TORCH_MODULE(Stage);

TEST(SameGraphs, StagesOfAPipeline_AreSilent) {
  expect_silence([](RankContext& ctx) {
    const bool is_last = ctx.rank() == ctx.size() - 1;
    const auto x = at::ones({2, 4});
    Stage uneven(1 + ctx.rank(), is_last);
    compile(uneven)(x);
    compile([&](const at::Tensor& in) { return uneven(in); })(x);
    Stage even(1, is_last);
    auto stage = compile(even);
    for (int step = 0; step < 20; ++step) {
      auto in = at::ones({2, 4});
      if (ctx.rank() > 0) ctx.group().recv(in, ctx.rank() - 1)->wait();
      const auto out = stage(in).detach();
      if (!is_last) ctx.group().send(out, ctx.rank() + 1)->wait();
    }
  });
}

TEST(SameGraphs, GroupsOfEachRank_AreSilent) {
  expect_silence([](RankContext& ctx) {
    std::vector<int> low{0}, high;
    for (int rank = 1; rank < ctx.size(); ++rank) high.push_back(rank);
    const Group first = ctx.new_group(low), second = ctx.new_group(high);
    const Group own = ctx.rank() == 0 ? first : second;
    auto f = compile(by_rank(ctx.rank() == 0), {.group = own, .same_graphs = true});
    f(at::ones({4}));
    auto g = compile([](const at::Tensor& x, const Group& group) {
      auto y = x * 2;
      group.allreduce(y)->wait();
      return y;
    });
    g(at::ones({4}), own);
  });
}

TEST(SameGraphs, DataParallelModules_AreCompared) {
  for (const bool differ : {false, true}) {
    const auto report = run(3, [&](RankContext& ctx) {
      Stage net(2, differ && ctx.rank() == 2);
      DistributedDataParallel ddp(net, ctx.group());
      auto f = compile(ddp);
      f(at::ones({2 + (differ ? 0 : ctx.rank()), 4})).sum().backward();
    });
    if (!differ) {
      EXPECT_THAT(report.remarks, IsEmpty());
    } else {
      EXPECT_THAT(report.remarks, ElementsAre(HasSubstr("ranks 0-1 and rank 2 compiled different graphs of forward: "
                                                        "torch.ops.aten.relu.default at ")));
    }
  }
}

TEST(SameGraphs, AsAnOption_IsAnErrorOnAllRanks) {
  for (const int ranks : {2, 3, 8}) {
    for (const bool compilers : {true, false}) {
      run(ranks, [&](RankContext& ctx) {
        auto f = compile(by_rank(ctx.rank() == 0),
                         {.group = ctx.group(), .compiler_collectives = compilers, .same_graphs = true, .name = "f"});
        for (int call = 0; call < 2; ++call) {
          const std::string error = error_of([&] { f(at::ones({4 + ctx.rank()})); });
          EXPECT_THAT(error, MatchesRegex("rank 0 and ranks? [1-7-]+ compiled different graphs of f: "
                                          "torch\\.ops\\.aten\\.mul\\.Scalar at .*same_graphs_test\\.cpp:[0-9]+.* on "
                                          "rank 0, torch\\.ops\\.aten\\.add\\.Scalar at .* on ranks? [1-7-]+\\. "
                                          "CompileOptions::same_graphs asks for equal ones"));
        }
      });
    }
  }
}

using Pair = std::function<at::Tensor(const at::Tensor&, const at::Tensor&)>;

// The code of rank 0 and of the others, and what is said of them. All use the same operators.
struct Swap {
  Pair first, others;
  const char* difference;
};

const std::vector<Swap> kSwaps{
    {[](const auto& x, const auto&) { return x.sin(); }, [](const auto&, const auto& y) { return y.sin(); },
     "sin\\.default\\(Float argument 0\\).* on rank 0, .*sin\\.default\\(Float argument 1\\)"},
    {[](const auto& x, const auto& y) { return x - y; }, [](const auto& x, const auto& y) { return y - x; },
     "sub\\.Tensor\\(Float argument 0, Float argument 1\\).* on rank 0, .*\\(Float argument 1, Float argument 0\\)"},
    {[](const auto& x, const auto&) { return x.to(at::kLong) * 1.5; },
     [](const auto& x, const auto&) { return x.to(at::kInt) * 1.5; }, "\\(.*Long.*\\).* on rank 0, .*\\(.*Int.*\\)"},
    {[](const auto& x, const auto&) { return std::get<0>(x.view({2, -1}).max(1)).sum(); },
     [](const auto& x, const auto&) { return std::get<1>(x.view({2, -1}).max(1)).sum(); },
     "getitem\\(.*, 0\\).* on rank 0, .*getitem\\(.*, 1\\)"},
    // The last operator of the segment behind a read has both values in the other order.
    {[](const auto& x, const auto& y) {
       const auto a = x.sin(), b = y.cos();
       return a.sum().template item<double>() < 100 ? a - b : a;
     },
     [](const auto& x, const auto& y) {
       const auto a = x.sin(), b = y.cos();
       return a.sum().template item<double>() < 100 ? b - a : b;
     },
     "sub\\.Tensor\\(Float value 0, Float value 1\\).* on rank 0, .*\\(Float value 1, Float value 0\\)"},
};

TEST(SameGraphs, InputsOfOperators_AreCompared) {
  for (std::size_t i = 0; i < kSwaps.size(); ++i) {
    const auto code = [&](const RankContext& ctx) {
      return [swap = &kSwaps[i], first = ctx.rank() == 0](const at::Tensor& x, const at::Tensor& y) {
        return first ? swap->first(x, y) : swap->others(x, y);
      };
    };
    const auto report = run(3, [&](RankContext& ctx) { compile(code(ctx))(at::ones({4}), at::ones({4})); });
    EXPECT_THAT(report.remarks, ElementsAre(ContainsRegex(kSwaps[i].difference))) << i;
    run(3, [&](RankContext& ctx) {
      auto f = compile(code(ctx), {.group = ctx.group(), .same_graphs = true});
      EXPECT_THAT(error_of([&] { f(at::ones({4}), at::ones({4})); }), ContainsRegex(kSwaps[i].difference)) << i;
    });
    expect_silence([&](RankContext& ctx) {
      compile(kSwaps[i].first)(at::ones({4 + 2 * ctx.rank()}), at::ones({4 + 2 * ctx.rank()}));
      compile(kSwaps[i].first, {.group = ctx.group(), .same_graphs = true})(at::ones({4}), at::ones({4}));
    });
  }
}

// As with sizes, which part a rank takes is its own matter.
TEST(SameGraphs, PartsOfAList_MayBeTheRanks) {
  expect_silence([](RankContext& ctx) {
    const auto own = [rank = ctx.rank()](const at::Tensor& x) {
      return x.chunk(8)[static_cast<std::size_t>(rank)].sin();
    };
    compile(own)(at::ones({8}));
    compile(own, {.group = ctx.group(), .same_graphs = true})(at::ones({8}));
  });
}

TEST(SameGraphs, ResultsInAnotherOrder_AreCompared) {
  const auto report = run(2, [](RankContext& ctx) {
    compile([first = ctx.rank() == 0](const at::Tensor& x) {
      const auto a = x.sin(), b = x.cos();
      return first ? std::pair(a, b) : std::pair(b, a);
    })(at::ones({4}));
  });
  EXPECT_THAT(report.remarks, ElementsAre(HasSubstr("the results(%0, %1) on rank 0, the results(%1, %0) on rank 1")));
}

// Two equal layers in either order, under a name of the rank's own.
struct TwoLayersImpl : torch::nn::Module {
  TwoLayersImpl(const std::string& name, bool swaps) : swaps(swaps) {
    register_module(name + "a", a);
    register_module(name + "b", b);
  }
  at::Tensor forward(const at::Tensor& x) { return swaps ? a(b(x)) : b(a(x)); }
  torch::nn::Linear a{4, 4}, b{4, 4};
  bool swaps;
};
TORCH_MODULE(TwoLayers);

template <class Net>
void run_layers(Net& net, const CompileOptions& options) {
  auto f = compile(net, options);
  for (int call = 0; call < 2; ++call) f(at::ones({2, 4})).sum().backward();
}

TEST(SameGraphs, EqualLayersInAnotherOrder_AreCompared) {
  const char* const kLayers = "parameter 0.* on rank 0, .*parameter 2.* on ranks 1-2";
  for (const int wrapper : {0, 1, 2}) {
    const auto code = [&](RankContext& ctx, bool differ, const CompileOptions& options) {
      TwoLayers net(wrapper == 0 ? std::to_string(ctx.rank()) : "", differ && ctx.rank() > 0);
      if (wrapper == 0) return run_layers(net, options);
      if (wrapper == 1) {
        DistributedDataParallel ddp(net, ctx.group());
        return run_layers(ddp, options);
      }
      FullyShardedDataParallel sharded(net, ctx.group());
      run_layers(sharded, options);
    };
    const auto report = run(3, [&](RankContext& ctx) { code(ctx, true, {}); });
    EXPECT_THAT(report.remarks, Contains(ContainsRegex(kLayers))) << wrapper;
    run(3, [&](RankContext& ctx) {
      const CompileOptions options{.group = ctx.group(), .same_graphs = true};
      EXPECT_THAT(error_of([&] { code(ctx, true, options); }), ContainsRegex(kLayers)) << wrapper;
    });
    const auto alike = run(3, [&](RankContext& ctx) {
      code(ctx, false, {});
      code(ctx, false, {.group = ctx.group(), .same_graphs = true});
    });
    EXPECT_THAT(alike.remarks, Not(Contains(HasSubstr("different graphs")))) << wrapper;
  }
}

TEST(SameGraphs, AliasesThatDiffer_ExplainTheGraphs) {
  expect_silence([](RankContext& ctx) {
    const auto x = at::ones({4}), y = at::ones({4});
    compile([](const at::Tensor&, const at::Tensor& second) { return second.sin(); })(x, ctx.rank() == 0 ? x : y);
  });
}

TEST(SameGraphs, CodeOfARoot_MayDiffer) {
  expect_silence([](RankContext& ctx) {
    const bool is_root = ctx.rank() == 0;
    compile([&, group = ctx.group()](const at::Tensor& x) {
      at::Tensor sent = is_root ? x.sin() : x.clone();
      group.broadcast(sent, 0)->wait();
      return sent;
    })(at::ones({4}));
  });
}

TEST(SameGraphs, AsAnOption_AllowsUnevenBatches) {
  expect_silence([](RankContext& ctx) {
    for (const bool compilers : {true, false}) {
      auto f = compile([](const at::Tensor& x) { return (x * x.sym_size(0)).view_symint({-1, x.sym_size(0)}); },
                       {.group = ctx.group(), .compiler_collectives = compilers, .same_graphs = true});
      for (const int rows : {2, 5, 9}) {
        if (compilers || rows < 9) f(at::ones({rows + ctx.rank(), 4}));
      }
    }
  });
}

TEST(SameGraphs, WithoutAGroup_IsAnError) {
  auto f = compile(by_rank(true), {.same_graphs = true, .name = "f"});
  EXPECT_EQ(error_of([&] { f(at::ones({4})); }),
            "'f' is compiled with same_graphs and without a group: say with .group which ranks compare their graphs");
}

}  // namespace
}  // namespace same_graphs
