// SPDX-License-Identifier: BSD-3-Clause
// Contract: programs whose ranks compile different things at different times end exactly as the model predicts: no
// false alarm, no miss.
#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <rehearse/comm/functional.h>
#include <rehearse/parallel/distributed_data_parallel.h>

#include "core/compile/compiler_collectives/divergence_model.h"
#include "core/compile/compiler_collectives/seed_fixture.h"
#include "kit/boxed_op.h"

namespace rehearse::compiler {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

WorldOptions options_of(const DivergentProgram& program, std::uint64_t seed) {
  WorldOptions options{.ranks = program.ranks(), .seed = seed, .explain_failures = false, .explain_remarks = false};
  if (program.slow) options.compile_time.per_node = 1min;
  if (program.jitter) options.compile_time = {.per_node = 1ms, .jitter = 3.0};
  if (program.slow || program.jitter) options.timeout = 30s;
  if (program.fails) options.compile_divergence = CompileDivergence::fail;
  return options;
}

CompileOptions compile_options_of(const DivergentProgram& program, RankContext& ctx) {
  CompileOptions options{.backend = "eager", .verify = Verify::Never};
  options.fullgraph = program.kind != DivergentProgram::Kind::Reads;
  if (program.together != DivergentProgram::Together::Nobody) options.group = ctx.group();
  options.compiler_collectives = program.together != DivergentProgram::Together::Guards;
  options.guard_collectives = program.guards();
  options.name = program.renamed && ctx.rank() == ctx.size() - 1 ? "g" : "f";
  return options;
}

at::Tensor sum_over_ranks(const at::Tensor& x, const std::string& group) {
  static const rehearse::test::BoxedOp<at::Tensor(const at::Tensor&, std::string, std::string)> all_reduce(
      "_c10d_functional::all_reduce");
  return functional::wait_tensor(all_reduce.call(x, "sum", group));
}

// Runs one rank of a program. The function in eager mode is the reference for the compiled one.
class SweptRank {
 public:
  SweptRank(const DivergentProgram& program, RankContext& ctx, std::vector<int>& compiles)
      : program_(program), ctx_(ctx), rank_(static_cast<std::size_t>(ctx.rank())), compiles_(compiles) {}

  void run() {
    using Kind = DivergentProgram::Kind;
    switch (program_.kind) {
      case Kind::Plain:
        return call_each([](const at::Tensor& x) { return x.sum(); }, [](const at::Tensor& x) { return x.sum(); });
      case Kind::Reduces:
        return reduce();
      case Kind::Reads: {
        const auto f = [](const at::Tensor& x) { return (x.sum() < 0).item<bool>() ? x * 2 : x + 1; };
        return call_each(f, f);
      }
      case Kind::Splits:
        return split();
    }
  }

 private:
  void reduce() {
    const std::string group = ctx_.group()->getGroupName();
    const auto f = [&group](const at::Tensor& x) {
      at::Tensor y = x.sum() + sum_over_ranks(at::ones({}), group);
      if (x.sym_size(0) > 4) y = y + sum_over_ranks(at::ones({}), group);
      return y;
    };
    const float ranks = static_cast<float>(ctx_.size());
    call_each(f, [ranks](const at::Tensor& x) { return x.sum() + ranks * (x.size(0) > 4 ? 2.F : 1.F); });
  }

  template <class Function, class Eager>
  void call_each(const Function& function, const Eager& eager) {
    auto compiled = compile(function, compile_options_of(program_, ctx_));
    for (std::size_t call = 0; call < program_.lengths[rank_].size(); ++call) {
      const at::Tensor x = input(call);
      EXPECT_THAT(compiled(x), BitEqual(eager(x)));
      compiles_.push_back(static_cast<int>(compiled.stats().compiles_in_last_call));
      if (program_.barriers) ctx_.group().barrier()->wait();
    }
  }

  void split() {
    torch::nn::Sequential net(torch::nn::Linear(4, 4), torch::nn::Linear(4, 4));
    const bool is_small = program_.small_buckets[rank_];
    DistributedDataParallel ddp(
        net, ctx_.group(),
        {.bucket_cap_mb = is_small ? 64. / (1 << 20) : 25., .find_unused_parameters = program_.fixed_buckets});
    auto compiled = compile(ddp, compile_options_of(program_, ctx_));
    for (std::size_t call = 0; call < program_.lengths[rank_].size(); ++call) {
      const at::Tensor x = input(call).unsqueeze(1).expand({-1, 4}).contiguous();
      const at::Tensor found = compiled(x);
      compiles_.push_back(static_cast<int>(compiled.stats().compiles_in_last_call));
      EXPECT_EQ(compiled.stats().graphs, compiled.stats().compiles * (is_small ? 2 : 1));
      found.sum().backward();
      const c10::NoGradGuard no_grad;
      EXPECT_THAT(found, BitEqual(net->forward(x)));
    }
  }

  at::Tensor input(std::size_t call) const {
    const at::Tensor x = at::arange(program_.lengths[rank_][call], at::kFloat) + 1;
    return program_.negative[rank_][call] ? -x : x;
  }

  const DivergentProgram& program_;
  RankContext& ctx_;
  const std::size_t rank_;
  std::vector<int>& compiles_;
};

Report run(const DivergentProgram& program, std::uint64_t seed, std::vector<std::vector<int>>& compiles) {
  compiles.resize(program.lengths.size());
  return World(options_of(program, seed)).run([&](RankContext& ctx) {
    SweptRank(program, ctx, compiles[static_cast<std::size_t>(ctx.rank())]).run();
  });
}

using Seen = std::map<std::pair<DivergentProgram::Kind, Verdict>, int>;

void expect_as_known(std::uint64_t seed, Seen& seen) {
  const auto program = program_of(seed);
  const auto expected = expectation(program);
  SCOPED_TRACE("seed " + std::to_string(seed) + ": " + program.text());
  std::vector<std::vector<int>> compiles;
  const auto report = run(program, seed, compiles);
  ++seen[{program.kind, expected.verdict}];
  EXPECT_EQ(report.verdict, expected.verdict) << sim::to_text(report);
  for (const auto& text : expected.in_headline) EXPECT_THAT(report.headline, HasSubstr(text));
  const bool of_waits = expected.verdict == Verdict::deadlock || expected.verdict == Verdict::timeout;
  const auto is_recompilation = [](const std::string& text) { return text.starts_with(" recompiled "); };
  if (of_waits && std::none_of(expected.in_headline.begin(), expected.in_headline.end(), is_recompilation)) {
    EXPECT_THAT(report.headline, testing::Not(HasSubstr(" recompiled ")));
  }
  if (expected.verdict != Verdict::ok) return;
  EXPECT_EQ(compiles, expected.compiles);
  ASSERT_EQ(report.remarks.size(), expected.remarks.size()) << sim::to_text(report);
  for (std::size_t i = 0; i < expected.remarks.size(); ++i) {
    EXPECT_THAT(report.remarks[i], HasSubstr(expected.remarks[i]));
  }
}

TEST(DivergenceSweep, ThousandSeeds_EndAsKnownBefore) {
  Seen seen;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) expect_as_known(seed, seen);
  // Each kind of program must end with each of four verdicts often enough. Timeouts come from slow compilations, which
  // only two kinds have.
  using Kind = DivergentProgram::Kind;
  for (const auto kind : {Kind::Plain, Kind::Reduces, Kind::Reads, Kind::Splits}) {
    for (const auto verdict : {Verdict::ok, Verdict::deadlock, Verdict::mismatch, Verdict::check_failed}) {
      EXPECT_GE((seen[{kind, verdict}]), 4) << static_cast<int>(kind) << " " << static_cast<int>(verdict);
    }
  }
  for (const auto kind : {Kind::Plain, Kind::Reads}) EXPECT_GE((seen[{kind, Verdict::timeout}]), 4);
}

}  // namespace
}  // namespace rehearse::compiler
