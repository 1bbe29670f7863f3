// SPDX-License-Identifier: BSD-3-Clause
// Contract: a compiled model whose layers are checkpoints takes as much memory as in eager mode (within 5%) and has the
// same gradients.
#include <functional>
#include <regex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/compile/compile.h>
#include <rehearse/sim/world.h>

#include "bit_equal.h"
#include "models/checkpointed_transformer.h"

namespace rehearse::compiler {
namespace {

using rehearse::test::BitEqual;
using test::CheckpointedTransformer;

constexpr std::int64_t kCheckpoints = 12;

struct MemoryOfTraining {
  std::vector<at::Tensor> gradients;
  double peak = 0;  // in MiB
};

using Step = std::function<void(CheckpointedTransformer& model)>;

MemoryOfTraining measured(bool saves, const Step& step) {
  WorldOptions options;
  options.ranks = 1;
  options.memory_bytes = std::uint64_t{8} << 30;
  World world(options);
  MemoryOfTraining found;
  const auto report = world.run([&](RankContext&) {
    CheckpointedTransformer model(kCheckpoints, saves);
    step(model);
    for (const at::Tensor& each : model.layers->parameters()) found.gradients.push_back(each.grad());
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << report.headline;
  std::smatch peak;
  for (const auto& remark : report.remarks) {
    if (std::regex_search(remark, peak, std::regex("peaked at ([0-9.]+)MiB of"))) found.peak = std::stod(peak[1]);
  }
  return found;
}

MemoryOfTraining measured_compiled(bool saves, const char* backend) {
  return measured(saves, [backend](CheckpointedTransformer& model) {
    auto forward =
        compile([&](const at::Tensor& x) { return model.forward(x).mean(); }, {.backend = backend, .fullgraph = true});
    forward(model.tokens()).backward();
    EXPECT_EQ(forward.stats().graphs, 1);
  });
}

TEST(CompiledCheckpointMemory, Transformer_TakesWhatEagerModeTakes) {
  const MemoryOfTraining eager = measured(true, [](CheckpointedTransformer& model) { model.step(); });
  const MemoryOfTraining plain = measured_compiled(false, "aot_eager");
  RecordProperty("eager", std::to_string(eager.peak));
  RecordProperty("without", std::to_string(plain.peak));
  for (const char* const backend : {"eager", "aot_eager"}) {
    const MemoryOfTraining saved = measured_compiled(true, backend);
    RecordProperty(backend, std::to_string(saved.peak));
    EXPECT_NEAR(saved.peak, eager.peak, 0.05 * eager.peak) << backend;
    EXPECT_LT(saved.peak, 0.5 * plain.peak) << backend;
    EXPECT_THAT(saved.gradients, BitEqual(eager.gradients)) << backend;
  }
}

}  // namespace
}  // namespace rehearse::compiler
