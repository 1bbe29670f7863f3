// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <rehearse/parallel/comm_hooks.h>
#include <rehearse/parallel/power_sgd.h>

namespace rehearse_test::recorded {

// The PowerSGD runs of tests/data/ddp/record_ddp.py: each trains the model `Matrix` for six iterations. The first two
// iterations (in the case "late", the first four) are plain all-reduces.
inline constexpr int kPowerSgdSteps = 6;
inline constexpr double kPowerSgdRate = 1.0 / 512;

// One training's options, and the wrapper around the hook, if any.
struct PowerSgdCase {
  std::string name;
  rehearse::parallel::PowerSgdOptions options = {};
  decltype(&rehearse::parallel::fp16_compress_wrapper) wrapper = nullptr;
  double relative = 1e-9;  // tolerance for another order of additions

  std::string recorded_as() const { return "power_sgd_" + name; }

  std::unique_ptr<c10d::CommHookInterface> hook(const c10::intrusive_ptr<c10d::ProcessGroup>& group) const {
    namespace parallel = rehearse::parallel;
    auto given = options;
    if (given.start_power_sgd_iter == parallel::PowerSgdOptions().start_power_sgd_iter) given.start_power_sgd_iter = 2;
    auto hook = parallel::power_sgd_hook(std::make_shared<parallel::PowerSgd>(group, given));
    return wrapper != nullptr ? wrapper(std::move(hook)) : std::move(hook);
  }
};

inline std::vector<PowerSgdCase> power_sgd_cases() {
  namespace parallel = rehearse::parallel;
  return {
      {"rank1", {.min_compression_rate = 1}},
      {"rank2", {.matrix_approximation_rank = 2, .min_compression_rate = 1}},
      {"rank3_qr", {.matrix_approximation_rank = 3, .min_compression_rate = 1}},
      {"cold", {.min_compression_rate = 1, .warm_start = false, .random_seed = 5}},
      {"no_feedback", {.min_compression_rate = 1, .use_error_feedback = false}},
      {"batched", {.min_compression_rate = 1, .batch_tensors_with_same_shape = true}},
      {"epsilon", {.min_compression_rate = 1, .orthogonalization_epsilon = 0.125}},
      {"late", {.start_power_sgd_iter = 4, .min_compression_rate = 1}},
      {"rate2", {.min_compression_rate = 2}},
      {"fp16", {.min_compression_rate = 1}, parallel::fp16_compress_wrapper, 2e-3},
      {"bf16", {.min_compression_rate = 1}, parallel::bf16_compress_wrapper, 1.6e-2},
  };
}

}  // namespace rehearse_test::recorded
