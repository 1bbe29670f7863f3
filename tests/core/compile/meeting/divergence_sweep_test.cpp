// SPDX-License-Identifier: BSD-3-Clause
// Contract: of programs whose ranks compile different things at different times, each ends as it must, known before:
// no false alarm, no miss.
#include <map>
#include <string>

#include "core/compile/meeting/divergence_model.h"
#include "core/compile/meeting/seed_fixture.h"

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
  using Together = DivergentProgram::Together;
  CompileOptions options{.backend = "eager", .fullgraph = true, .verify = Verify::Never};
  if (program.together != Together::Nobody) options.group = ctx.group();
  options.compiler_collectives = program.together != Together::Guards;
  options.guard_collectives = program.together == Together::Guards || program.together == Together::Both;
  options.name = program.renamed && ctx.rank() == ctx.size() - 1 ? "g" : "f";
  return options;
}

Report run(const DivergentProgram& program, std::uint64_t seed, std::vector<std::vector<int>>& compiles) {
  compiles.resize(program.lengths.size());
  return World(options_of(program, seed)).run([&](RankContext& ctx) {
    const auto rank = static_cast<std::size_t>(ctx.rank());
    auto compiled = compile([](const at::Tensor& x) { return x.sum(); }, compile_options_of(program, ctx));
    for (const auto length : program.lengths[rank]) {
      const at::Tensor x = at::arange(length, at::kFloat);
      EXPECT_TRUE(compiled(x).equal(x.sum()));
      compiles[rank].push_back(static_cast<int>(compiled.stats().compiles_in_last_call));
      if (program.barriers) ctx.group().barrier()->wait();
    }
  });
}

void expect_as_known(std::uint64_t seed, std::map<Verdict, int>& seen) {
  const auto program = program_of(seed);
  const auto expected = expectation(program);
  SCOPED_TRACE("seed " + std::to_string(seed) + ": " + program.text());
  std::vector<std::vector<int>> compiles;
  const auto report = run(program, seed, compiles);
  ++seen[expected.verdict];
  EXPECT_EQ(report.verdict, expected.verdict) << sim::to_text(report);
  for (const auto& text : expected.in_headline) EXPECT_THAT(report.headline, HasSubstr(text));
  if (expected.verdict != Verdict::ok) return;
  EXPECT_EQ(compiles, expected.compiles);
  ASSERT_EQ(report.remarks.size(), expected.remarks.size()) << sim::to_text(report);
  for (std::size_t i = 0; i < expected.remarks.size(); ++i) {
    EXPECT_THAT(report.remarks[i], HasSubstr(expected.remarks[i]));
  }
}

TEST(DivergenceSweep, ThousandSeeds_EndAsKnownBefore) {
  std::map<Verdict, int> seen;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) expect_as_known(seed, seen);
  // The family has enough of each kind.
  for (const auto verdict :
       {Verdict::ok, Verdict::deadlock, Verdict::timeout, Verdict::mismatch, Verdict::check_failed}) {
    EXPECT_GE(seen[verdict], 10) << static_cast<int>(verdict);
  }
}

}  // namespace
}  // namespace rehearse::compiler
