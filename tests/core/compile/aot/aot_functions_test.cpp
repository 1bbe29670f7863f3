// SPDX-License-Identifier: BSD-3-Clause
// Functions that rehearse::compile() compiles with aot_eager: behaviour that tests of single graphs do not show.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/compile/compile.h>

#include "bit_equal.h"
#include "core/compile/aot/part_check.h"

namespace rehearse::compiler {
namespace {

using rehearse::test::BitEqual;
using rehearse_test::leaf;

// The function changes a parameter under NoGradGuard, as an optimizer's step does. The parameter stays a leaf, and
// autograd differentiates the later use of it.
TEST(AotFunctions, AParameterThatChangesWithoutGradients) {
  for (const char* const backend : {"eager", "aot_eager"}) {
    const auto step = [](const at::Tensor& x, at::Tensor weight) {
      {
        const at::NoGradGuard no_grad;
        weight.sub_(x * 0.5);
      }
      return (x * weight).sin();
    };
    auto compiled = compile(step, {.backend = backend, .fullgraph = true});
    at::Tensor mine = leaf({3, 4});
    at::Tensor theirs = mine.detach().clone().requires_grad_();
    for (int call = 0; call < 3; ++call) {
      const at::Tensor x = at::arange(12, at::kFloat).view({3, 4}) + call;
      const at::Tensor found = compiled(x, mine);
      const at::Tensor expected = step(x, theirs);
      EXPECT_THAT(found, BitEqual(expected));
      EXPECT_THAT(mine, BitEqual(theirs));
      EXPECT_TRUE(mine.is_leaf());
      mine.mutable_grad().reset();
      theirs.mutable_grad().reset();
      found.sum().backward();
      expected.sum().backward();
      EXPECT_THAT(mine.grad(), BitEqual(theirs.grad()));
    }
    EXPECT_EQ(compiled.stats().compiles, 1);
  }
}

TEST(AotFunctions, ABackwardWhoseSizesDependOnDataRunsUnderEagerAutograd) {
  auto compiled = compile([](const at::Tensor& x) { return x.prod(); }, {.fullgraph = true});
  for (const double value : {2.0, 0.0}) {
    const at::Tensor mine = at::tensor({3.0, value, 5.0}).requires_grad_();
    const at::Tensor theirs = mine.detach().clone().requires_grad_();
    compiled(mine).backward();
    theirs.prod().backward();
    EXPECT_THAT(mine.grad(), BitEqual(theirs.grad()));
  }
  EXPECT_THAT(compiled.explain().entries.front().graphs.front().eager_because, testing::HasSubstr("u0"));
}

}  // namespace
}  // namespace rehearse::compiler
