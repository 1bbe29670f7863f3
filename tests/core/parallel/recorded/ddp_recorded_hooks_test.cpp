// SPDX-License-Identifier: BSD-3-Clause
// Communication hooks: LibTorch's own, bfloat16, wrappers, PowerSGD.
#include <gtest/gtest.h>

#include "core/parallel/recorded/recorded_power_sgd.h"
#include "core/parallel/recorded/recorded_training.h"

namespace {

using namespace rehearse_test;
using namespace rehearse_test::recorded;
namespace parallel = rehearse::parallel;
using BuiltIn = c10d::BuiltinCommHookType;

TEST(DdpRecordedHooks, Allreduce) {
  expect_recorded("hook_allreduce", training<recorded::Mlp>({}, kSum, [](auto& ddp, RankContext&) {
                    ddp.register_comm_hook(BuiltIn::ALLREDUCE);
                  }));
}

// The sum of 16-bit floats depends on the order in which ranks are added, because each addition may round by half an
// ulp.
TEST(DdpRecordedHooks, Fp16) {
  expect_recorded("hook_fp16",
                  training<recorded::Mlp>(
                      {}, kSum, [](auto& ddp, RankContext&) { ddp.register_comm_hook(BuiltIn::FP16_COMPRESS); }),
                  {.relative = 2e-3, .exact_at_first = false});
}

TEST(DdpRecordedHooks, Bf16) {
  expect_recorded("hook_bf16",
                  training<recorded::Mlp>({}, kSum,
                                          [](auto& ddp, RankContext& ctx) {
                                            ddp.register_comm_hook(parallel::bf16_compress_hook(ctx.group()));
                                          }),
                  {.relative = 1.6e-2, .exact_at_first = false});
}

// The wrapper converts gradients to 16-bit floats, and the hook inside it sums these.
Body wrapped(decltype(&parallel::fp16_compress_wrapper) wrapper) {
  return training<recorded::Mlp>({}, kSum, [=](auto& ddp, RankContext& ctx) {
    ddp.register_comm_hook(wrapper(parallel::allreduce_hook(ctx.group())));
  });
}

TEST(DdpRecordedHooks, WrapperFp16) {
  expect_recorded("wrapper_fp16", wrapped(parallel::fp16_compress_wrapper),
                  {.relative = 2e-3, .exact_at_first = false});
}
TEST(DdpRecordedHooks, WrapperBf16) {
  expect_recorded("wrapper_bf16", wrapped(parallel::bf16_compress_wrapper),
                  {.relative = 1.6e-2, .exact_at_first = false});
}

class DdpRecordedPowerSgd : public testing::TestWithParam<PowerSgdCase> {};

TEST_P(DdpRecordedPowerSgd, Values) {
  const auto given = GetParam();
  expect_recorded(
      given.recorded_as(),
      training<Matrix>({.steps = kPowerSgdSteps, .rate = kPowerSgdRate}, kSquares,
                       [=](auto& ddp, RankContext& ctx) { ddp.register_comm_hook(given.hook(ctx.group())); }),
      {.relative = given.relative, .exact_at_first = false});
}

INSTANTIATE_TEST_SUITE_P(Options, DdpRecordedPowerSgd, testing::ValuesIn(power_sgd_cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
