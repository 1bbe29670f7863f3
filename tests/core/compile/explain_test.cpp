// SPDX-License-Identifier: BSD-3-Clause
#include <chrono>

#include <gmock/gmock.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <rehearse/compile/errors.h>
#include <rehearse/compile/mark_dynamic.h>
#include <rehearse_internal/capture/errors.h>

#include "bit_equal.h"
#include "core/compile/recompile_counts.h"

// This function is outside namespace rehearse, because without line tables, reports take the functions of that
// namespace for library code.
namespace user {

// The addition is not a tail call, so its line is known.
at::Tensor twice(const at::Tensor& x) { return (x + x) * 1; }

}  // namespace user

namespace rehearse::compiler {
namespace {

using rehearse::test::BitEqual;
using user::twice;

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Calls = std::vector<std::tuple<at::Tensor>>;

TEST(Explain, TellsWhyACallWasNotServed) {
  auto compiled = compile(twice, {.backend = "eager", .name = "twice", .argument_names = {"x"}});
  compiled(at::ones({4, 8}));
  compiled(at::ones({5, 8}));
  compiled(at::ones({1, 8}));
  const Explanation told = compiled.explain();
  ASSERT_EQ(told.recompiles.size(), 2U);
  EXPECT_EQ(told.recompiles[0].call, 2);
  ASSERT_EQ(told.recompiles[0].failures.size(), 1U);
  EXPECT_EQ(told.recompiles[0].failures[0].source, "x.size(0)");
  EXPECT_EQ(told.recompiles[0].failures[0].expected, "4");
  EXPECT_EQ(told.recompiles[0].failures[0].found, "5");
  EXPECT_THAT(told.recompiles[0].failures[0].line, HasSubstr("explain_test.cpp:")) << told.text();
  ASSERT_EQ(told.recompiles[1].failures.size(), 2U);
  EXPECT_THAT(text_of(told.recompiles[1].failures[0]), HasSubstr("x.size(0)"));
  EXPECT_THAT(told.text(), HasSubstr("twice: 3 calls, 0 served by the cache, 3 compilations, 3 graphs"));
  EXPECT_THAT(told.text(), HasSubstr("s0 is x.size(0)"));
}

TEST(Explain, RefusedCodeRunsAsItIs) {
  const auto differentiates = [](const at::Tensor& x) {
    const at::Tensor w = x.detach().clone().set_requires_grad(true);
    (w * 2).sum().backward();
    return w.grad();
  };
  auto compiled = compile(differentiates, {.backend = "eager"});
  for (int i = 0; i < 3; ++i) EXPECT_THAT(compiled(at::ones({2})), BitEqual(at::full({2}, 2.0)));
  EXPECT_EQ(compiled.stats().eager_calls, 3);
  EXPECT_EQ(compiled.stats().compiles, 0);
  EXPECT_THAT(compiled.explain().refusal, HasSubstr("backward() or grad()"));

  auto strict = compile(differentiates, {.backend = "eager", .fullgraph = true});
  EXPECT_THROW(strict(at::ones({2})), capture::NotCapturable);
}

// LibTorch's backward of max() reads data, so no backward can be recorded.
TEST(Explain, TellsWhyAGraphRunsUnderEagerAutograd) {
  auto compiled = compile([](const at::Tensor& x) { return x - x.max(); }, {.backend = "aot_eager", .fullgraph = true});
  compiled(at::ones({4}).requires_grad_()).sum().backward();
  const Explanation told = compiled.explain();
  EXPECT_THAT(told.entries.at(0).graphs.at(0).eager_because, HasSubstr("_local_scalar_dense"));
  EXPECT_THAT(told.text(), HasSubstr("    runs under eager autograd: aten::_local_scalar_dense"));

  auto recorded = compile(twice, {.backend = "aot_eager"});
  recorded(at::ones({4}).requires_grad_());
  EXPECT_EQ(recorded.explain().entries.at(0).graphs.at(0).eager_because, "");
  EXPECT_THAT(recorded.explain().text(), ::testing::Not(HasSubstr("eager autograd")));
}

TEST(Explain, TheUsersExceptionsLeaveAsTheyAre) {
  auto compiled = compile([](const at::Tensor& x) -> at::Tensor {
    if (x.dim() > 1) throw std::domain_error("too many dimensions");
    return x * 2;
  });
  EXPECT_THROW(compiled(at::ones({2, 2})), std::domain_error);
  EXPECT_THAT(compiled(at::ones({2})), BitEqual(at::full({2}, 2.0)));
  EXPECT_EQ(compiled.stats().compiles, 1);
}

// PyTorch's names for these scenarios are mark_first_only, mark_static, mark_dynamic_4_1_0 and mark_dynamic_violated.
TEST(MarkDynamic, MarksDecideForTheirDimension) {
  const auto marked = [](std::int64_t n, bool dynamic) {
    at::Tensor x = at::ones({n, 8});
    dynamic ? mark_dynamic(x, 0) : mark_static(x, -2);
    return std::tuple(x);
  };
  auto first = compile(twice);
  EXPECT_THAT(compiles(first, twice, Calls{marked(4, true), {at::ones({5, 8})}, {at::ones({6, 8})}}),
              ElementsAre(1, 0, 0));
  auto fixed = compile(twice);
  EXPECT_THAT(compiles(fixed, twice, Calls{marked(4, false), marked(5, false), marked(6, false)}),
              ElementsAre(1, 1, 1));
  auto small = compile(twice);
  EXPECT_THAT(compiles(small, twice, Calls{marked(4, true), marked(2, true), {at::ones({1, 8})}, {at::ones({0, 8})}}),
              ElementsAre(1, 0, 1, 1));
  auto violated = compile([](const at::Tensor& x) { return x.size(0) == 4 ? x * 2 : x; });
  EXPECT_THROW(violated(std::get<0>(marked(4, true))), CompileError);
  EXPECT_THROW(mark_dynamic(at::ones({2}), 1), std::out_of_range);
}

TEST(MarkDynamic, WhatFixesTheSize_IsAnErrorThatNamesTheGuard) {
  using Fixes = at::Tensor (*)(const at::Tensor& x);
  const std::pair<Fixes, const char*> all[] = {
      {[](const at::Tensor& x) { return x.sym_size(1) == 4 ? x * 2 : x; }, "s0 == 4"},
      {[](const at::Tensor& x) { return x.sym_size(1) != 4 ? x * 2 : x; }, "s0 == 4"},
      {[](const at::Tensor& x) { return x.sym_size(1) * 2 + 1 == 9 ? x * 2 : x; }, "4"},
      {[](const at::Tensor& x) { return x.sym_size(1) <= 4 && x.sym_size(1) >= 4 ? x * 2 : x; }, "s0 >= 4"},
      {[](const at::Tensor& x) { return x.sym_size(1) % 4 == 0 && x.sym_size(1) == 4 ? x * 2 : x; }, "s0 == 4"},
      {[](const at::Tensor& x) { return x.matmul(at::ones({4, 3})); }, "s0 == 4"},
      {[](const at::Tensor& x) { return at::linear(x, at::ones({3, 4})); }, "s0 == 4"},
      {[](const at::Tensor& x) { return x + at::ones({2, 4}); }, "s0 == 4"},
      {[](const at::Tensor& x) { return x.view({2, 2, 2}); }, "s0 == 4"},
      {[](const at::Tensor& x) { return x.expand({2, 4}); }, "s0 == 4"},
      {[](const at::Tensor& x) { return x.unbind(1)[0]; }, "s0 == 4"},
  };
  for (const auto& [fixes, guard] : all) {
    for (const bool fullgraph : {false, true}) {
      auto compiled = compile(fixes, {.fullgraph = fullgraph});
      const at::Tensor x = at::ones({2, 4});
      mark_dynamic(x, 1);
      try {
        compiled(x);
        ADD_FAILURE() << guard;
      } catch (const CompileError& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr("arg0.size(1) was marked dynamic, but the code fixes it: "));
        EXPECT_THAT(error.what(), testing::HasSubstr(guard));
        EXPECT_THAT(error.what(), testing::StartsWith("explain_test.cpp:"));
      }
    }
  }
}

TEST(MarkDynamic, WhatOnlyBoundsTheSize_IsNone) {
  auto compiled = compile([](const at::Tensor& x) { return x.sym_size(0) == 9 || x.sym_size(0) < 3 ? x : x * 2; },
                          {.fullgraph = true});
  for (const std::int64_t rows : {4, 7}) {
    const at::Tensor x = at::ones({rows, 2});
    mark_dynamic(x, 0);
    EXPECT_THAT(compiled(x), BitEqual(x * 2));
  }
  EXPECT_EQ(compiled.stats().compiles, 1);
}

// The graph sees in-place changes of a parameter's data. Guards notice if the parameter's requires_grad, sizes or dtype
// change, or if the module's mode changes.
TEST(Parameters, ChangesOfKindAreGuarded) {
  torch::nn::Linear net(8, 3);
  const auto eager = [&](const at::Tensor& x) { return net->forward(x); };
  auto compiled = compile(net);
  const Calls call = {{at::ones({4, 8})}};
  EXPECT_THAT(compiles(compiled, eager, call), ElementsAre(1));
  {
    const at::NoGradGuard no_grad;
    net->weight.add_(1);
  }
  EXPECT_THAT(compiles(compiled, eager, call), ElementsAre(0));
  net->weight.requires_grad_(false);
  EXPECT_THAT(compiles(compiled, eager, call), ElementsAre(1));
  net->weight.requires_grad_(true);
  EXPECT_THAT(compiles(compiled, eager, call), ElementsAre(0));
  net->weight.set_data(at::ones({5, 8}));
  net->bias.set_data(at::ones({5}));
  EXPECT_THAT(compiles(compiled, eager, call), ElementsAre(1));
  net->to(at::kDouble);
  const Calls doubles = {{at::ones({4, 8}, at::kDouble)}};
  EXPECT_THAT(compiles(compiled, eager, doubles), ElementsAre(1));
  net->eval();
  EXPECT_THAT(compiles(compiled, eager, doubles), ElementsAre(1));
}

TEST(Nested, CompiledFunctionsBecomePartOfTheOuterGraph) {
  auto inner = compile(twice, {.backend = "eager"});
  auto outer = compile([&](const at::Tensor& x) { return inner(x) + 1; }, {.backend = "eager"});
  EXPECT_THAT(outer(at::ones({2})), BitEqual(at::full({2}, 3.0)));
  EXPECT_EQ(inner.stats().calls, 0);
  EXPECT_EQ(outer.stats().compiles, 1);
}

TEST(Results, AnyTreeOfValuesComesBack) {
  using Result = std::tuple<at::Tensor, std::vector<at::Tensor>, std::optional<at::Tensor>, c10::SymInt, std::string>;
  auto compiled =
      compile([](const at::Tensor& x) { return Result(x + 1, {x * 2, x}, at::Tensor(), x.sym_size(0) * 2, "done"); },
              {.backend = "eager", .dynamic = true});
  for (const std::int64_t n : {4, 5, 6}) {
    const at::Tensor x = at::ones({n});
    const auto [plus, list, none, size, text] = compiled(x);
    EXPECT_THAT(plus, BitEqual(x + 1));
    EXPECT_THAT(list[0], BitEqual(x * 2));
    EXPECT_TRUE(list[1].is_same(x));
    EXPECT_FALSE(none->defined());
    EXPECT_EQ(size, 2 * n);
    EXPECT_EQ(text, "done");
  }
  EXPECT_EQ(compiled.stats().compiles, 1);

  auto in_place = compile([](at::Tensor x) { x.add_(1); }, {.backend = "eager"});
  const at::Tensor x = at::zeros({3});
  in_place(x);
  in_place(x);
  EXPECT_THAT(x, BitEqual(at::full({3}, 2.0)));
}

}  // namespace
}  // namespace rehearse::compiler
