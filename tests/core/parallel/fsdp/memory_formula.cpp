// SPDX-License-Identifier: BSD-3-Clause
#include "core/parallel/fsdp/memory_formula.h"

#include <algorithm>
#include <memory>
#include <regex>
#include <string>

#include <torch/optim/adamw.h>

#include "core/parallel/fsdp/fsdp_fixture.h"
#include "core/parallel/fsdp/reference_models.h"

namespace rehearse_test {
namespace {

constexpr double kUnits[] = {1, 1 << 10, 1 << 20, 1 << 30};

// The largest of all ranks' peaks, read from lines of the report such as "memory: rank 0 peaked at 1.5GiB of 8GiB:
// ...".
double peak_of(const rehearse::WorldOptions& options, const rehearse::World::Body& body) {
  rehearse::World world(options);
  const auto report = world.run(body);
  EXPECT_EQ(report.verdict, rehearse::Verdict::ok) << brief(report);
  const std::regex pattern("peaked at ([0-9.]+)(B|KiB|MiB|GiB) of");
  double peak = 0;
  for (const auto& remark : report.remarks) {
    for (std::sregex_iterator it(remark.begin(), remark.end(), pattern); it != std::sregex_iterator(); ++it) {
      const std::string unit = (*it)[2];
      const auto power = std::string("BKMG").find(unit[0]);
      peak = std::max(peak, std::stod((*it)[1]) * kUnits[power]);
    }
  }
  EXPECT_GT(peak, 0) << brief(report);
  return peak;
}

std::shared_ptr<ReferenceTransformer> transformer(const TransformerSize& size) {
  return std::make_shared<ReferenceTransformer>(size.depth, size.width, size.heads);
}

at::Tensor tokens(const TransformerSize& size) { return at::ones({size.batch, size.time, size.width}); }

double bytes_of(const torch::nn::Module& module) {
  double bytes = 0;
  for (const auto& each : module.parameters()) bytes += static_cast<double>(each.nbytes());
  return bytes;
}

rehearse::WorldOptions counted(int ranks) { return {.ranks = ranks, .memory_bytes = std::uint64_t{16} << 30}; }

}  // namespace

StepMemory measure_step(const TransformerSize& size, int ranks) {
  double whole = 0, unit = 0;
  const double plain = peak_of(counted(1), [&](rehearse::RankContext&) {
    const auto model = transformer(size);
    whole = bytes_of(*model);
    unit = bytes_of(*model->blocks.front());
    model->forward(tokens(size)).square().mean();
  });
  StepMemory found;
  const double activations = plain - whole;  // at the peak of the forward: all tensors but the parameters
  const double shards = 4 * whole / ranks;   // parameters, gradients, and AdamW's two averages
  found.formula = shards + 2 * unit + 2 * unit + 2 * unit + activations;
  found.peak = peak_of(counted(ranks), [&](rehearse::RankContext& ctx) {
    const std::shared_ptr<ReferenceTransformer> model = transformer(size);
    rehearse::FullyShardedDataParallel fsdp(
        model, ctx.group(), {.units = rehearse::UnitPolicy::of_type<ReferenceBlockImpl>(), .init_sync = false});
    torch::optim::AdamW optimizer(fsdp.parameters(), torch::optim::AdamWOptions(1e-3));
    for (int step = 0; step < 2; ++step) {  // the second has the optimizer's averages, and prefetches in forward
      fsdp.zero_grad();
      fsdp(tokens(size)).square().mean().backward();
      optimizer.step();
    }
  });
  ::testing::Test::RecordProperty("peak", std::to_string(found.peak));
  ::testing::Test::RecordProperty("formula", std::to_string(found.formula));
  return found;
}

}  // namespace rehearse_test
