// SPDX-License-Identifier: BSD-3-Clause
// Script modules that compiled code switches or changes: each call sees it, as in eager mode.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/compile/compile.h>

#include "bit_equal.h"
#include "core/compile/like_eager/script_network.h"

namespace rehearse::compiler::script_switches_test {
namespace {

using namespace script_network;
using rehearse::test::BitEqual;

TEST(ScriptCalls, OfAModuleThatTheCodeSwitches) {
  using Function = at::Tensor (*)(Script&, const at::Tensor&, std::int64_t number);
  const Function functions[] = {[](Script& m, const at::Tensor& x, std::int64_t number) {
                                  m.train(number % 2 == 0);
                                  return m.forward({x}).toTensor() + 1;
                                },
                                [](Script& m, const at::Tensor& x, std::int64_t) {
                                  m.eval();
                                  const at::Tensor y = m.forward({x * 2}).toTensor();
                                  m.train();
                                  return y + m.forward({x}).toTensor();
                                },
                                [](Script& m, const at::Tensor& x, std::int64_t) {
                                  m.eval();
                                  return m.forward({x}).toTensor();
                                },
                                [](Script& m, const at::Tensor& x, std::int64_t) {
                                  m.eval();
                                  return x * 2;
                                },
                                [](Script& m, const at::Tensor& x, std::int64_t) {
                                  const at::Tensor y = call(m, "normalized", {x}) * 2;
                                  m.setattr("calls", m.attr("calls").toInt() + 1);
                                  return y;
                                }};
  for (const Function function : functions) {
    Script mine = network(), twins = network();
    auto compiled = compile([&](const at::Tensor& x, std::int64_t number) { return function(mine, x, number); });
    for (int number = 0; number < 8; ++number) {
      if (number == 5) mine.train(), twins.train();
      const at::Tensor x = at::arange(12, at::kFloat).view({4, 3});
      at::manual_seed(7);
      const at::Tensor found = compiled(x, number / 2 % 2);
      at::manual_seed(7);
      EXPECT_THAT(found, BitEqual(function(twins, x, number / 2 % 2))) << (&function - functions) << " call " << number;
      EXPECT_EQ(mine.is_training(), twins.is_training());
      EXPECT_EQ(mine.attr("calls").toInt(), twins.attr("calls").toInt()) << "call " << number;
    }
  }
}

}  // namespace
}  // namespace rehearse::compiler::script_switches_test
