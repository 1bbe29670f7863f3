// SPDX-License-Identifier: BSD-3-Clause
// Contract: a model whose layers are checkpoints takes as much memory as the formula in docs/GUIDE.md says, and has the
// same gradients.
#include <algorithm>
#include <regex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/sim/world.h>

#include "bit_equal.h"
#include "models/checkpointed_transformer.h"

namespace {

using rehearse::test::BitEqual;
using rehearse::test::CheckpointedTransformer;

constexpr std::int64_t kLayers = 12;
constexpr double kBytesOfMiB = 1 << 20;

struct Trained {
  std::vector<at::Tensor> gradients;
  double parameters = 0;  // in MiB
  double peak = 0;        // in MiB
};

Trained step(std::int64_t layers, bool saves) {
  CheckpointedTransformer model(layers, saves);
  model.step();
  Trained found;
  for (const at::Tensor& each : model.layers->parameters()) {
    found.gradients.push_back(each.grad());
    found.parameters += static_cast<double>(each.nbytes()) / kBytesOfMiB;
  }
  return found;
}

Trained trained(std::int64_t layers, bool saves) {
  rehearse::WorldOptions options;
  options.ranks = 1;
  options.memory_bytes = std::uint64_t{8} << 30;
  rehearse::World world(options);
  Trained found;
  const auto report = world.run([&](rehearse::RankContext&) { found = step(layers, saves); });
  EXPECT_EQ(report.verdict, rehearse::Verdict::ok) << report.headline;
  std::smatch peak;
  for (const auto& remark : report.remarks) {
    if (std::regex_search(remark, peak, std::regex("peaked at ([0-9.]+)MiB of"))) found.peak = std::stod(peak[1]);
  }
  return found;
}

TEST(CheckpointMemory, Transformer_TakesWhatTheFormulaSays) {
  using Model = CheckpointedTransformer;
  const Trained one = trained(1, false), plain = trained(kLayers, false), saved = trained(kLayers, true);
  const double input = Model::kBatch * Model::kTime * Model::kWidth * sizeof(float) / kBytesOfMiB;
  const double formula = one.peak + (kLayers - 1) * (one.parameters + std::max(one.parameters, input));
  RecordProperty("formula", std::to_string(formula));
  RecordProperty("peak", std::to_string(saved.peak));
  RecordProperty("without", std::to_string(plain.peak));
  EXPECT_NEAR(saved.peak, formula, 0.1 * formula);
  EXPECT_LT(saved.peak, 0.5 * plain.peak);
  EXPECT_THAT(saved.gradients, BitEqual(plain.gradients));
}

}  // namespace
