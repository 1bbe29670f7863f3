// SPDX-License-Identifier: BSD-3-Clause
// Seed tests whose tensors are on a GPU.
#include <functional>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "core/compile/seeds/seed_test.h"
#include "core/compile/seeds/storage_seeds.h"
#include "gpu_world.h"

namespace rehearse::compiler {
namespace {

// Real worlds with a GPU for each rank; skipped without a GPU.
class DistributedPatternTestsOnGpu : public SeedTest {
 protected:
  void SetUp() override {
    REHEARSE_REQUIRE_GPUS(1);
    SeedTest::SetUp();
  }

  void on_gpus(const std::function<Compiled(at::Device)>& body) {
    for (const int size : ranks()) {
      const auto report = run(real::GpuWorld::on_gpus(size), [&](RankContext& ctx) {
        ASSERT_TRUE(ctx.device().is_cuda());
        const Compiled compiled = body(ctx.device());
        expect_listed(compiled.stats, compiled.counts);
      });
      EXPECT_TRUE(has_verdict(report, Verdict::ok));
    }
  }
};

TEST_F(DistributedPatternTestsOnGpu, test_storage_resize_zero_gpu) { on_gpus(&resize_argument_to_zero); }
TEST_F(DistributedPatternTestsOnGpu, test_storage_resize_nonzero_gpu) { on_gpus(&resize_result_to_argument); }

}  // namespace
}  // namespace rehearse::compiler
