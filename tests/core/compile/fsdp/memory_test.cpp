// SPDX-License-Identifier: BSD-3-Clause
// Contract: a compiled sharded model takes as much memory as in eager mode (within 5%).
#include <algorithm>
#include <memory>
#include <regex>
#include <string>

#include <gtest/gtest.h>
#include <torch/optim/adamw.h>

#include "core/compile/fsdp/compiled_training.h"
#include "core/parallel/fsdp/reference_models.h"

namespace {

using namespace rehearse_test;
using rehearse::RankContext;

// The peak memory of a rank's tensors, in MiB, in two steps of a transformer whose blocks are units. Returns the
// largest peak if the ranks differ.
double peak_of(bool compiles) {
  rehearse::World world({.ranks = 4, .memory_bytes = std::uint64_t{8} << 30});
  const auto report = world.run([&](RankContext& ctx) {
    const auto model = std::make_shared<ReferenceTransformer>(8, 128, 4);
    rehearse::FullyShardedDataParallel fsdp(
        model, ctx.group(), {.units = rehearse::UnitPolicy::of_type<ReferenceBlockImpl>(), .init_sync = false});
    auto compiled = rehearse::compile(fsdp, {.fullgraph = true});
    torch::optim::AdamW optimizer(fsdp.parameters(), torch::optim::AdamWOptions(1e-3));
    for (int step = 0; step < 2; ++step) {
      fsdp.zero_grad();
      const auto x = at::ones({2, 16, 128});
      (compiles ? compiled(x) : fsdp(x)).square().mean().backward();
      optimizer.step();
    }
    EXPECT_EQ(compiled.stats().graphs, compiles ? 8 : 0);
  });
  EXPECT_EQ(report.verdict, rehearse::Verdict::ok) << brief(report);
  double peak = 0;
  const std::regex pattern("peaked at ([0-9.]+)MiB of");
  for (const auto& remark : report.remarks) {
    for (std::sregex_iterator it(remark.begin(), remark.end(), pattern); it != std::sregex_iterator(); ++it)
      peak = std::max(peak, std::stod((*it)[1]));
  }
  return peak;
}

TEST(CompiledFsdpMemory, Transformer_TakesWhatEagerModeTakes) {
  const double eager = peak_of(false), compiled = peak_of(true);
  RecordProperty("eager", std::to_string(eager));
  RecordProperty("compiled", std::to_string(compiled));
  EXPECT_GT(eager, 0);
  EXPECT_NEAR(compiled, eager, 0.05 * eager);
}

}  // namespace
