// SPDX-License-Identifier: BSD-3-Clause
// The tests of TestMultiProc are ports of the tests with the same names in PyTorch's test_dynamo_distributed.py. They
// test what ranks agree on when they compile. docs/SEEDS.md lists the set-up of each test and its numbers. `Counts` has
// one number for each call, usually the number of compilations.
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <rehearse/compile/eager_region.h>
#include <rehearse/parallel/distributed_data_parallel.h>

#include "core/compile/compiler_collectives/seed_fixture.h"
#include "core/compile/seeds/seed_test.h"
#include "own_process.h"

namespace rehearse::compiler {
namespace {

using namespace std::chrono_literals;

const std::vector<std::uint64_t> kSeeds = {1, 2, 3};

at::Tensor lengths_of(std::int64_t length) { return at::arange(length, at::kFloat) + 1; }

// Trains a module with a compiled forward under DDP for three steps, and compares it with the same module in eager
// mode.
TEST_F(TestMultiProc, test_compiler_collectives_automatic_dynamic_tensor) {
  on_ranks(kSeeds, [this](RankContext& ctx) {
    torch::nn::Linear net(10, 2), eager(10, 2);
    {
      const c10::NoGradGuard no_grad;
      for (std::size_t i = 0; i < 2; ++i) eager->parameters()[i].copy_(net->parameters()[i]);
    }
    auto compiled = compile(net, together(ctx));
    DistributedDataParallel ddp(net, ctx.group(), {.bucket_cap_mb = cap_mb()});
    DistributedDataParallel eager_ddp(eager, ctx.group(), {.bucket_cap_mb = cap_mb()});
    torch::optim::SGD optimizer(ddp.parameters(), 1e-3), eager_optimizer(eager_ddp.parameters(), 1e-3);
    Counts counts;
    for (const int batch : ctx.rank() == 0 ? std::vector{5, 8, 6} : std::vector{6, 6, 3}) {
      const at::Tensor x = at::randn({batch, 10}), label = at::randint(2, {batch}, at::kLong);
      const auto step = [&](auto& model, auto& updates, const at::Tensor& output) {
        at::cross_entropy_loss(output, label).backward();
        updates.step();
        model.zero_grad();
        return output;
      };
      const auto found = step(ddp, optimizer, ddp.forward_with([&](const at::Tensor& in) { return compiled(in); }, x));
      counts.push_back(static_cast<int>(compiled.stats().compiles_in_last_call));
      EXPECT_THAT(found, BitEqual(step(eager_ddp, eager_optimizer, eager_ddp.forward(x))));
    }
    expect_listed(compiled.stats(), counts, ctx.rank());
    for (std::size_t i = 0; i < 2; ++i) EXPECT_THAT(net->parameters()[i], BitEqual(eager->parameters()[i]));
    expect_same_number(ctx, compiled);
  });
}

// Rank 0 compiles for the second time in its third call. This compilation takes part in the same exchange as the second
// compilation of the other ranks, which is in their second call.
TEST_F(TestMultiProc, test_compiler_collectives_automatic_dynamic_scalar) {
  on_ranks(kSeeds, [this](RankContext& ctx) {
    const auto f = [](const at::Tensor& x, const c10::SymInt& y) { return x + at::ones_symint({y}).sum(); };
    auto compiled = compile(f, together(ctx));
    std::vector<std::tuple<at::Tensor, c10::SymInt>> calls;
    for (const int y : ctx.rank() == 0 ? std::vector{3, 3, 7} : std::vector{3, 4, 9})
      calls.emplace_back(lengths_of(5), y);
    const Counts counts = call_each(f, compiled, calls);
    expect_listed(compiled.stats(), counts, ctx.rank());
    expect_same_number(ctx, compiled);
  });
}

TEST_F(TestMultiProc, test_compiler_collectives_automatic_dynamic_speculation_divergence) {
  on_ranks(kSeeds, [this](RankContext& ctx) {
    const auto f = [](const at::Tensor& x, const at::Tensor& y) { return x.sum() + y.sum(); };
    auto compiled = compile(f, together(ctx));
    std::vector<std::tuple<at::Tensor, at::Tensor>> calls;
    for (const int n : ctx.rank() == 0 ? std::vector{4, 4} : std::vector{3, 4}) {
      calls.emplace_back(lengths_of(n), lengths_of(n));
    }
    const Counts counts = call_each(f, compiled, calls);
    expect_listed(compiled.stats(), counts, ctx.rank());
    expect_same_number(ctx, compiled);
  });
}

// The function has an eager region before its first operator, so its first graph is empty. The ranks agree on this
// graph as on any other.
TEST_F(TestMultiProc, test_compiler_collectives_graph_break_empty_graph_still_collective) {
  on_ranks(kSeeds, [this](RankContext& ctx) {
    static std::map<int, int> printed;  // by rank
    printed[ctx.rank()] = 0;
    const auto f = [](int rank, const at::Tensor& x, const at::Tensor& y) {
      eager_region([](int of_rank) { ++printed[of_rank]; }, rank);
      return x.sum() + y.sum();
    };
    auto options = together(ctx);
    options.fullgraph = false;
    auto compiled = compile(f, options);
    Counts compiles, graphs;
    for (const int n : ctx.rank() == 0 ? std::vector{5, 5, 6} : std::vector{3, 4, 5}) {
      const auto before = compiled.stats().graphs;
      EXPECT_THAT(compiled(ctx.rank(), lengths_of(n), lengths_of(n)), BitEqual(lengths_of(n).sum() * 2));
      compiles.push_back(static_cast<int>(compiled.stats().compiles_in_last_call));
      graphs.push_back(static_cast<int>(compiled.stats().graphs - before));
    }
    expect_listed(compiled.stats(), compiles, ctx.rank());
    EXPECT_EQ(graphs, (Counts{2, 0, 0}));
    EXPECT_EQ(printed[ctx.rank()], 3);
    EXPECT_EQ(compiled.explain().entries.at(0).graphs.at(0).nodes, 0U);
    expect_same_number(ctx, compiled);
  });
}

TEST_F(TestMultiProc, test_compiler_collectives_dim_mismatch) {
  on_ranks(kSeeds, [this](RankContext& ctx) {
    const auto f = [](const at::Tensor& x, const at::Tensor& y) { return x.sum() + y.sum(); };
    auto compiled = compile(f, together(ctx));
    const at::Tensor x = ctx.rank() == 0 ? at::randn({4, 2}) : at::randn({3});
    const Counts counts = call_each(f, compiled, std::vector{std::tuple(x, x.clone())});
    expect_listed(compiled.stats(), counts, ctx.rank());
    expect_same_number(ctx, compiled);
  });
}

TEST_F(TestMultiProc, test_compiler_collectives_missing_source) {
  on_ranks(kSeeds, [this](RankContext& ctx) {
    const auto f = [](std::int64_t rank, const std::vector<at::Tensor>& xs) {
      return xs[static_cast<std::size_t>(rank)].sum();
    };
    auto compiled = compile(f, together(ctx));
    std::vector<at::Tensor> xs;
    for (int rank = 0; rank < ctx.size(); ++rank) xs.push_back(lengths_of(10) * (rank + 1));
    const Counts counts = call_each(f, compiled, std::vector{std::tuple(std::int64_t{ctx.rank()}, xs)});
    expect_listed(compiled.stats(), counts, ctx.rank());
    expect_same_number(ctx, compiled);
  });
}

TEST_F(TestMultiProc, test_compiler_collectives_scalar_missing_source) {
  on_ranks(kSeeds, [this](RankContext& ctx) {
    const auto f = [](std::int64_t rank, const std::vector<std::int64_t>& xs) {
      return at::scalar_tensor(xs[static_cast<std::size_t>(rank)], at::kLong);
    };
    auto compiled = compile(f, together(ctx));
    std::vector<std::int64_t> xs;
    for (int rank = 0; rank < ctx.size(); ++rank) xs.push_back(10 + rank);
    const Counts counts = call_each(f, compiled, std::vector{std::tuple(std::int64_t{ctx.rank()}, xs)});
    expect_listed(compiled.stats(), counts, ctx.rank());
    expect_same_number(ctx, compiled);
  });
}

using Either = std::variant<at::Tensor, std::int64_t>;

at::Tensor tensor_of_either(const Either& x) {
  const auto* const number = std::get_if<std::int64_t>(&x);
  return number != nullptr ? at::scalar_tensor(*number, at::kLong) : std::get<at::Tensor>(x).sum();
}

// The second call swaps the types. All ranks compile again, and agree.
TEST_F(TestMultiProc, test_compiler_collectives_type_mismatch) {
  for (const bool guards_too : {false, true}) {
    on_ranks(kSeeds, [this, guards_too](RankContext& ctx) {
      auto options = together(ctx);
      options.guard_collectives = guards_too;
      auto compiled = compile(tensor_of_either, options);
      const Either tensor = lengths_of(10), number = std::int64_t{12};
      const bool first = ctx.rank() == 0;
      const std::vector<std::tuple<Either>> calls{first ? tensor : number, first ? number : tensor};
      const Counts counts = call_each(tensor_of_either, compiled, calls);
      expect_listed(compiled.stats(), counts, ctx.rank());
      expect_same_number(ctx, compiled);
    });
  }
}

// The types stay, and the values change. PyTorch's test leaves out such calls, because PyTorch hangs in them. A
// std::int64_t is a constant of the graph, so the ranks with the number compile at each call. Because the std::variant
// is a number on these ranks, the length of rank 0's tensor stays a constant, too. So rank 0 compiles at each call,
// together with these ranks.
TEST(TypeMismatch, OtherValuesOfTheSameTypes_CompileTogether) {
  for (const bool guards_too : {false, true}) {
    on_ranks([guards_too](RankContext& ctx) {
      auto options = together(ctx);
      options.guard_collectives = guards_too;
      auto compiled = compile(tensor_of_either, options);
      std::vector<std::tuple<Either>> calls;
      for (const std::int64_t tensor_length : {10, 12, 14}) {
        const std::int64_t number = 22 - tensor_length;
        calls.emplace_back(ctx.rank() == 0 ? Either(lengths_of(tensor_length)) : Either(number));
      }
      EXPECT_EQ(call_each(tensor_of_either, compiled, calls), (Counts{1, 1, 1})) << "rank " << ctx.rank();
      expect_same_number(ctx, compiled);
    });
  }
}

// Like test_compiler_collectives_automatic_dynamic_tensor, with the tensors in a std::optional and a std::variant.
TEST(HeldTensors, WithOtherSizesOnOtherRanks_BecomeDynamicOnAll) {
  on_ranks([](RankContext& ctx) {
    const auto f = [](const std::optional<at::Tensor>& x, const Either& y) { return x->sum() + tensor_of_either(y); };
    auto compiled = compile(f, together(ctx));
    std::vector<std::tuple<std::optional<at::Tensor>, Either>> calls;
    for (const int n : ctx.rank() == 0 ? std::vector{5, 7} : std::vector{6, 8}) {
      calls.emplace_back(lengths_of(n), lengths_of(n + 4));
    }
    EXPECT_EQ(call_each(f, compiled, calls), (Counts{1, 0})) << "rank " << ctx.rank();
    expect_same_number(ctx, compiled);
  });
}

// Rank 0 compiles a second time although its own guards hold.
TEST_F(TestMultiProc, test_guard_collective) {
  on_ranks(kSeeds, [this](RankContext& ctx) {
    const auto f = [](const at::Tensor& x) { return x.sum(); };
    auto options = together(ctx);
    options.compiler_collectives = false;
    options.guard_collectives = true;
    auto compiled = compile(f, options);
    const std::vector<std::tuple<at::Tensor>> calls{lengths_of(10), ctx.rank() == 0 ? lengths_of(10) : lengths_of(12)};
    const Counts counts = call_each(f, compiled, calls);
    expect_listed(compiled.stats(), counts, ctx.rank());
    expect_same_number(ctx, compiled);
  });
}

class SlowOnRank0 final : public Backend {
 public:
  explicit SlowOnRank0(RankContext& ctx) : ctx_(ctx) {}
  std::string name() const override { return "slow"; }
  CompiledGraph compile(const BackendInput& input) override {
    if (ctx_.rank() == 0) ctx_.compute(5s);
    return make_backend("eager")->compile(input);
  }

 private:
  RankContext& ctx_;
};

Report run_asymmetric(int ranks, bool extend, const std::function<void(int, const CompileStats&)>& compiled_on = {}) {
  return World({.ranks = ranks, .timeout = 3s}).run([&](RankContext& ctx) {
    CompileOptions options{.backend = std::make_shared<SlowOnRank0>(ctx), .fullgraph = true, .name = "f"};
    auto compiled = compile([](const at::Tensor& x) { return (x * 2).sum(); }, options);
    const at::Tensor x = at::ones({4});
    ctx.group().allreduce(x)->wait();
    EXPECT_THAT(compiled(x), BitEqual((x * 2).sum()));
    if (extend && ctx.rank() != 0) ctx.group().extend_timeout_once(5s);
    if (compiled_on) compiled_on(ctx.rank(), compiled.stats());
    ctx.group().allreduce(x)->wait();
    EXPECT_THAT(x, BitEqual(at::full({4}, ctx.size() * ctx.size(), at::kFloat)));
    expect_same_number(ctx, compiled);
  });
}

TEST_F(TestMultiProc, test_asymmetric_compilation) {
  for (const int size : ranks()) {
    const auto report = run_asymmetric(size, true, [this](int rank, const CompileStats& stats) {
      expect_listed(stats, {static_cast<int>(stats.compiles_in_last_call)}, rank);
    });
    EXPECT_EQ(report.verdict, Verdict::ok) << sim::to_text(report);
    const auto without = run_asymmetric(size, false);
    EXPECT_EQ(without.verdict, Verdict::timeout);
    EXPECT_THAT(without.headline, testing::HasSubstr("rank 0 was still in a computation"));
  }
}

using MissHitBypass = std::vector<std::int64_t>;

// In the second part, the back end compiles on rank 0, and the other ranks read their graph from the folder. The
// timeout of their next collective grows by the time that they save, so that rank 0 arrives in time.
TEST_F(TestMultiProc, test_asymmetric_compilation_with_fx_cache) {
  for (const int size : ranks()) {
    const test::TemporaryFolder temporary;
    const auto folder = temporary.path() / "of all", fresh = temporary.path() / "of rank 0";
    World world({.ranks = size, .compile_time = {.per_node = 5s}, .timeout = 5s});
    const auto report = world.run([&](RankContext& ctx) {
      const auto f = [](const at::Tensor& x) { return (x * 2).sum(); };
      CompileOptions options{.dynamic = false, .fullgraph = true, .cache_dir = folder.string(), .name = "f"};
      const at::Tensor x = at::ones({4});
      auto before = compile(f, options);
      before(x);
      const CompileStats first = before.stats();
      expect_listed(first, {static_cast<int>(first.compiles_in_last_call)}, ctx.rank());
      EXPECT_EQ((MissHitBypass{first.cache_misses, first.cache_hits, first.cache_bypasses}), (MissHitBypass{1, 0, 0}));
      ctx.group().allreduce(x)->wait();
      if (ctx.rank() == 0) options.cache_dir = fresh.string();
      auto after = compile(f, options);
      EXPECT_THAT(after(x), BitEqual((x * 2).sum()));
      const CompileStats second = after.stats();
      EXPECT_EQ((MissHitBypass{first.cache_misses + second.cache_misses, first.cache_hits + second.cache_hits,
                               first.cache_bypasses + second.cache_bypasses}),
                (ctx.rank() == 0 ? MissHitBypass{2, 0, 0} : MissHitBypass{1, 1, 0}));
      expect_listed(second, {static_cast<int>(second.compiles_in_last_call)}, ctx.rank());
      ctx.group().allreduce(x)->wait();
      EXPECT_THAT(x, BitEqual(at::full({4}, size * size, at::kFloat)));
      expect_same_number(ctx, after);
    });
    EXPECT_EQ(report.verdict, Verdict::ok) << sim::to_text(report);
    EXPECT_GE(report.end_time.time_since_epoch(), 20s) << "rank 0 compiles twice";
    EXPECT_LT(report.end_time.time_since_epoch(), 21s);
  }
}

}  // namespace
}  // namespace rehearse::compiler
