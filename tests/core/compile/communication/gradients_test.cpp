// SPDX-License-Identifier: BSD-3-Clause
// The backward of a captured collective, for gradients in every memory layout. LibTorch's gradient formulas accept only
// contiguous gradients, and the gradient of sum() is expanded.
#include <functional>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/function.h>

#include <rehearse/comm/functional.h>
#include <rehearse/compile/compile.h>
#include <rehearse/sim/report_writers.h>
#include <rehearse/sim/world.h>

#include "bit_equal.h"

namespace rehearse::compiler {
namespace {

using at::Tensor;
using rehearse::test::BitEqual;
using testing::IsEmpty;
using Code = std::function<Tensor(const Tensor&, const Group&)>;
using Backward = std::function<void(const Tensor&)>;

struct NamedCode {
  std::string name;
  Code code;
  bool is_captured = true;
};

struct NamedBackward {
  std::string name;
  Backward backward;
};

std::vector<NamedCode> codes() {
  return {
      {"all_gather", [](const Tensor& x, const Group& group) { return functional::all_gather_tensor(x, group); }},
      {"all_gather of columns",
       [](const Tensor& x, const Group& group) { return functional::all_gather_tensor(x, group, 1); }},
      {"reduce_scatter",
       [](const Tensor& x, const Group& group) { return functional::reduce_scatter_tensor(at::cat({x, x}), group); }},
      {"mean of reduce_scatter",
       [](const Tensor& x, const Group& group) { return functional::reduce_scatter_tensor(x, group, "avg"); }},
      {"reduce_scatter of columns",
       [](const Tensor& x, const Group& group) { return functional::reduce_scatter_tensor(x, group, "sum", 1); }},
      {"all_to_all", [](const Tensor& x, const Group& group) { return functional::all_to_all_single(x, group); }},
      {"two in a row",
       [](const Tensor& x, const Group& group) {
         const Tensor whole = functional::all_gather_tensor(x.sin(), group).t();
         return functional::reduce_scatter_tensor(whole, group).t();
       }},
      {"all_reduce", [](const Tensor& x, const Group& group) { return functional::all_reduce(x, group); }, false},
      {"broadcast", [](const Tensor& x, const Group& group) { return functional::broadcast(x, group, 1); }, false},
  };
}

std::vector<NamedBackward> backwards() {
  return {
      {"of ones", [](const Tensor& y) { y.backward(at::ones_like(y)); }},
      {"of sum()", [](const Tensor& y) { y.sum().backward(); }},
      {"of the rows' sums", [](const Tensor& y) { (y.sum(1) * at::arange(y.size(0))).sum().backward(); }},
      {"of a transposed gradient",
       [](const Tensor& y) { y.backward(at::arange(y.numel(), at::kFloat).view({y.size(1), y.size(0)}).t()); }},
      {"of every second column",
       [](const Tensor& y) {
         y.backward(at::arange(2 * y.numel(), at::kFloat).view({y.size(0), 2 * y.size(1)}).slice(1, 0, {}, 2));
       }},
  };
}

// The gradient of x in each of three calls.
template <class Function>
std::vector<Tensor> gradients(const Function& function, const NamedBackward& how, int rank) {
  std::vector<Tensor> found;
  for (int call = 0; call < 3; ++call) {
    const Tensor x = (at::arange(16, at::kFloat).view({4, 4}) / 8 + rank - call).requires_grad_();
    how.backward(function(x));
    found.push_back(x.grad());
  }
  return found;
}

void expect_gradients_of_eager(const NamedCode& code, const std::string& backend, RankContext& ctx) {
  const auto group = ctx.group();
  const auto eager = [&](const Tensor& x) { return code.code(x, group); };
  for (const NamedBackward& how : backwards()) {
    auto compiled =
        compile([&](const Tensor& x, const Group& group) { return code.code(x, group); }, {.backend = backend});
    const auto expected = gradients(eager, how, ctx.rank());
    const auto found = gradients([&](const Tensor& x) { return compiled(x, ctx.group()); }, how, ctx.rank());
    EXPECT_EQ(compiled.explain().refusal.empty(), code.is_captured) << code.name;
    for (std::size_t call = 0; call < expected.size(); ++call) {
      EXPECT_TRUE(expected[call].defined()) << code.name << ' ' << how.name;
      EXPECT_THAT(found[call], BitEqual(expected[call]))
          << code.name << ' ' << how.name << ", " << backend << ", call " << call;
    }
  }
}

TEST(GradientsOfCollectives, InEveryLayout_AreThoseOfEagerMode) {
  for (const char* const backend : {"eager", "aot_eager"}) {
    const auto report = World({.ranks = 2}).run([&](RankContext& ctx) {
      for (const NamedCode& code : codes()) expect_gradients_of_eager(code, backend, ctx);
    });
    EXPECT_EQ(report.verdict, Verdict::ok) << sim::to_text(report);
    EXPECT_THAT(report.remarks, IsEmpty());
  }
}

struct GivesNoGradient : torch::autograd::Function<GivesNoGradient> {
  static Tensor forward(torch::autograd::AutogradContext*, const Tensor& x) { return x.clone(); }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*, torch::autograd::variable_list) {
    return {Tensor()};
  }
};

// LibTorch's formula treats an undefined gradient as zeros.
TEST(GradientsOfCollectives, ThatAreUndefined_AreThoseOfEagerMode) {
  const NamedBackward how = {"undefined", [](const Tensor& y) { (GivesNoGradient::apply(y).sum()).backward(); }};
  const auto report = World({.ranks = 2}).run([&](RankContext& ctx) {
    const auto code = [](const Tensor& x, const Group& group) { return functional::all_gather_tensor(x, group); };
    auto compiled = compile(code, {.backend = "eager", .fullgraph = true});
    const auto expected = gradients([&](const Tensor& x) { return code(x, ctx.group()); }, how, ctx.rank());
    const auto found = gradients([&](const Tensor& x) { return compiled(x, ctx.group()); }, how, ctx.rank());
    for (std::size_t call = 0; call < expected.size(); ++call) {
      EXPECT_THAT(expected[call], BitEqual(at::zeros({4, 4})));
      EXPECT_THAT(found[call], BitEqual(expected[call]));
    }
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << sim::to_text(report);
}

// A collective's result that the function returns is no reason to run the graph under eager autograd.
TEST(GradientsOfCollectives, OfAResultComeFromARecordedBackward) {
  const auto report = World({.ranks = 2}).run([&](RankContext& ctx) {
    auto compiled = compile([group = ctx.group()](const Tensor& x) { return functional::all_gather_tensor(x, group); },
                            {.fullgraph = true});
    const Tensor y = compiled(at::ones({2}).requires_grad_());
    EXPECT_THAT(y.grad_fn()->name(), testing::StartsWith("CompiledBackward"));
  });
  EXPECT_EQ(report.verdict, Verdict::ok) << sim::to_text(report);
}

}  // namespace
}  // namespace rehearse::compiler
