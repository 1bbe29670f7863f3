// SPDX-License-Identifier: BSD-3-Clause
// Communication hooks: LibTorch's, bfloat16, wrappers, PowerSGD.
#include <gtest/gtest.h>

#include <rehearse/parallel/comm_hooks.h>
#include <rehearse/parallel/power_sgd.h>

#include "core/parallel/recorded_training.h"

namespace {

using namespace rehearse_test;
using namespace rehearse_test::recorded;
namespace parallel = rehearse::parallel;
using parallel::PowerSgdOptions;
using BuiltIn = c10d::BuiltinCommHookType;

TEST(DdpRecordedHooks, Allreduce) {
  expect_recorded("hook_allreduce", training<recorded::Mlp>({}, kSum, [](auto& ddp, RankContext&) {
                    ddp.register_comm_hook(BuiltIn::ALLREDUCE);
                  }));
}

// Sums of short floats depend on the order of ranks: half an ulp of theirs a rank.
TEST(DdpRecordedHooks, Fp16) {
  expect_recorded(
      "hook_fp16",
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

// The wrapped hook's own values are short floats too.
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

// One iteration's options, and the wrapper around the hook, if any.
struct PowerSgdCase {
  const char* name;
  PowerSgdOptions options = {};
  decltype(&parallel::fp16_compress_wrapper) wrapper = nullptr;
  double relative = 1e-9;
};

PowerSgdOptions with_defaults(PowerSgdOptions options) {
  if (options.start_power_sgd_iter == PowerSgdOptions().start_power_sgd_iter)
    options.start_power_sgd_iter = 2;
  return options;
}

class DdpRecordedPowerSgd : public testing::TestWithParam<PowerSgdCase> {};

// Six iterations, of which the first two (late: four) are plain all-reduces.
TEST_P(DdpRecordedPowerSgd, Values) {
  const auto given = GetParam();
  const auto hook_of = [=](const RankContext& ctx) {
    auto hook = parallel::power_sgd_hook(
        std::make_shared<parallel::PowerSgd>(ctx.group(), with_defaults(given.options)));
    return given.wrapper != nullptr ? given.wrapper(std::move(hook)) : std::move(hook);
  };
  expect_recorded(
      std::string("power_sgd_") + given.name,
      training<Matrix>({.steps = 6, .rate = 1.0 / 512}, kSquares,
                       [=](auto& ddp, RankContext& ctx) { ddp.register_comm_hook(hook_of(ctx)); }),
      {.relative = given.relative, .exact_at_first = false});
}

INSTANTIATE_TEST_SUITE_P(
    Options, DdpRecordedPowerSgd,
    testing::Values(
        PowerSgdCase{"rank1", {.min_compression_rate = 1}},
        PowerSgdCase{"rank2", {.matrix_approximation_rank = 2, .min_compression_rate = 1}},
        PowerSgdCase{"rank3_qr", {.matrix_approximation_rank = 3, .min_compression_rate = 1}},
        PowerSgdCase{"cold", {.min_compression_rate = 1, .warm_start = false, .random_seed = 5}},
        PowerSgdCase{"no_feedback", {.min_compression_rate = 1, .use_error_feedback = false}},
        PowerSgdCase{"batched", {.min_compression_rate = 1, .batch_tensors_with_same_shape = true}},
        PowerSgdCase{"epsilon", {.min_compression_rate = 1, .orthogonalization_epsilon = 0.125}},
        PowerSgdCase{"late", {.start_power_sgd_iter = 4, .min_compression_rate = 1}},
        PowerSgdCase{"rate2", {.min_compression_rate = 2}},
        PowerSgdCase{"fp16", {.min_compression_rate = 1}, parallel::fp16_compress_wrapper, 2e-3},
        PowerSgdCase{"bf16", {.min_compression_rate = 1}, parallel::bf16_compress_wrapper, 1.6e-2}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
