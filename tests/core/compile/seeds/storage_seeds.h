// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Seed tests that resize storages in a captured function, for any device.
#include <cstdint>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/capture/storage.h>
#include <rehearse/compile/compile.h>

#include "bit_equal.h"
#include "core/compile/seeds/seed_run.h"

namespace rehearse::compiler {

// Runs `call(i)` for each i below `calls`. Returns how often `compiled` compiled in each of these calls.
template <class Function, class Call>
Counts counts_of(Function& compiled, int calls, const Call& call) {
  Counts counts;
  for (int i = 0; i < calls; ++i) {
    call(i);
    counts.push_back(static_cast<int>(compiled.stats().compiles_in_last_call));
  }
  return counts;
}

inline std::int64_t bytes_of(const at::Tensor& tensor) { return static_cast<std::int64_t>(tensor.storage().nbytes()); }

struct Compiled {
  CompileStats stats;
  Counts counts;
};

inline Compiled resize_argument_to_zero(at::Device device) {
  const at::NoGradGuard no_grad;
  auto compiled = compile(
      [](const at::Tensor& x) {
        const at::Tensor y = x.sin();
        resize_storage(x, 0);
        return y.cos();
      },
      {.fullgraph = true});
  const Counts counts = counts_of(compiled, 2, [&](int) {
    const at::Tensor x = at::randn({10}, device), expected = x.sin().cos();
    EXPECT_THAT(compiled(x), rehearse::test::BitEqual(expected));
    EXPECT_EQ(bytes_of(x), 0);
  });
  return {compiled.stats(), counts};
}

inline Compiled resize_result_to_argument(at::Device device) {
  const at::NoGradGuard no_grad;
  auto compiled = compile(
      [](const at::Tensor& x, const at::Tensor& out) {
        const at::Tensor y = x.sin();
        EXPECT_EQ(storage_bytes(out), 0);
        resize_storage(out, storage_bytes(x));
        out.copy_(y.cos());
      },
      {.fullgraph = true});
  const Counts counts = counts_of(compiled, 2, [&](int) {
    const at::Tensor x = at::randn({10}, device), out = at::empty({10}, device);
    resize_storage(out, 0);
    compiled(x, out);
    EXPECT_EQ(bytes_of(out), bytes_of(x));
    EXPECT_THAT(out, rehearse::test::BitEqual(x.sin().cos()));
  });
  return {compiled.stats(), counts};
}

}  // namespace rehearse::compiler
