// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/compile/compile.h>

#include "bit_equal.h"

namespace rehearse::compiler {

// Calls `compiled` and `function` with the arguments in each element of `calls`. Adds a test failure if the values,
// strides or requires_grad of their results differ. Returns the number of compilations in each call.
template <class Compiled, class Function, class... Args>
std::vector<int> compiles(Compiled& compiled, Function function, const std::vector<std::tuple<Args...>>& calls) {
  std::vector<int> counts;
  for (const auto& args : calls) {
    const at::Tensor expected = std::apply(function, args);
    const at::Tensor found = std::apply(compiled, args);
    EXPECT_THAT(found, rehearse::test::BitEqual(expected)) << "call " << counts.size();
    EXPECT_EQ(expected.strides(), found.strides());
    EXPECT_EQ(expected.requires_grad(), found.requires_grad());
    counts.push_back(static_cast<int>(compiled.stats().compiles_in_last_call));
  }
  return counts;
}

}  // namespace rehearse::compiler
