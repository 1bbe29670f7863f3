// SPDX-License-Identifier: BSD-3-Clause
// Back ends that change the memory layout of outputs. Later pieces give eager mode's results. If the back end states
// the new layout, and the results of these pieces do not depend on the layout, the pieces are compiled for the new
// layout.
#include <functional>
#include <memory>
#include <tuple>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/conv.h>

#include <rehearse/compile/compile.h>
#include <rehearse/compile/errors.h>
#include <rehearse/fakes/fake_ddp.h>

#include "bit_equal.h"
#include "core/compile/partitions/layout_backend.h"

namespace rehearse::compiler {
namespace {

using rehearse::test::BitEqual;
using test::LayoutBackend;
using test::OutputLayout;
using test::Statement;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The operations of the second piece on the result of the first.
using Middle = std::function<at::Tensor(const at::Tensor&)>;

// The first piece is the first convolution alone. The second piece has the middle part, the scale and the second
// convolution.
struct ConvolutionsImpl : torch::nn::Module {
  explicit ConvolutionsImpl(Middle between)
      : first(register_module("first", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 8, 1).bias(false)))),
        scale(register_parameter("scale", at::ones({8, 1, 1}))),
        second(register_module("second", torch::nn::Conv2d(torch::nn::Conv2dOptions(8, 8, 1).bias(false)))),
        middle(std::move(between)) {}

  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor y = first(x);
    const at::Tensor factor = scale * 2;
    return second(middle(y) * factor).relu();
  }

  torch::nn::Conv2d first;
  at::Tensor scale;
  torch::nn::Conv2d second;
  Middle middle;
};
TORCH_MODULE(Convolutions);

constexpr double kSecondPiece = (256 + 32) / 1024.0 / 1024.0;  // the cap in MiB: the parameters of the second piece

struct Ran {
  at::Tensor result;
  std::vector<at::Tensor> gradients;
};

template <class Forward>
Ran run(Convolutions& net, Forward&& forward, const at::Tensor& x) {
  at::manual_seed(7);
  Ran ran{forward(x), {}};
  if (!ran.result.requires_grad()) return ran;
  (ran.result * at::arange(ran.result.numel(), at::kFloat).view(ran.result.sizes())).sum().backward();
  for (at::Tensor& parameter : net->parameters()) {
    ran.gradients.push_back(parameter.grad().clone());
    parameter.mutable_grad().reset();
  }
  return ran;
}

// `is_true`: the back end states nothing false. compile() trusts a statement about the function's results, so after a
// false statement they have the wrong layout.
void expect_like_eager(Convolutions& net, const CompileOptions& options, bool is_true, std::int64_t batches) {
  fakes::FakeDDP<Convolutions> ddp(net, kSecondPiece);
  auto compiled = compile(ddp, options);
  for (std::int64_t batch = 2; batch < 2 + batches; ++batch) {
    const at::Tensor x = at::arange(batch * 3 * 4 * 6, at::kFloat).view({batch, 3, 4, 6}) / 64;
    const Ran mine = run(net, compiled, x), eager = run(net, [&](const at::Tensor& y) { return net->forward(y); }, x);
    EXPECT_TRUE(mine.result.allclose(eager.result, 1e-4, 1e-5));
    if (is_true) {
      EXPECT_EQ(mine.result.strides(), eager.result.strides());
      EXPECT_EQ(mine.result.storage_offset(), eager.result.storage_offset());
    }
    ASSERT_EQ(mine.gradients.size(), eager.gradients.size());
    for (std::size_t i = 0; i < mine.gradients.size(); ++i) {
      EXPECT_TRUE(mine.gradients[i].allclose(eager.gradients[i], 1e-4, 1e-4)) << i;
    }
  }
  EXPECT_EQ(compiled.explain().entries.at(0).graphs.size(), 2U);
}

class OutputLayouts : public testing::TestWithParam<std::tuple<OutputLayout, Statement, const char*>> {
 protected:
  std::shared_ptr<LayoutBackend> backend() const {
    const auto [layout, statement, inner] = GetParam();
    return std::make_shared<LayoutBackend>(layout, statement, inner);
  }
  bool is_stated() const { return std::get<1>(GetParam()) == Statement::True; }

  // Runs training, and a forward without gradients. Returns how many inputs of the second piece had another layout than
  // at capture when the piece was compiled.
  std::size_t expect_all_like_eager(const Middle& middle, std::optional<bool> dynamic = std::nullopt) const {
    Convolutions net(middle);
    const bool is_true = std::get<1>(GetParam()) != Statement::False;
    const auto training = backend(), inference = backend();
    expect_like_eager(net, {.backend = training, .dynamic = dynamic, .fullgraph = true}, is_true, dynamic ? 3 : 1);
    EXPECT_THAT(training->names(), ElementsAre("submod_0", "submod_1"));
    const at::NoGradGuard no_grad;
    expect_like_eager(net, {.backend = inference, .dynamic = dynamic, .fullgraph = true}, is_true, dynamic ? 3 : 1);
    EXPECT_EQ(training->other_inputs(), inference->other_inputs());
    return training->other_inputs();
  }
};

TEST_P(OutputLayouts, PointwisePieceIsCompiledForWhatIsStated) {
  EXPECT_EQ(expect_all_like_eager([](const at::Tensor& x) { return x.relu(); }), is_stated() ? 1U : 0U);
}

TEST_P(OutputLayouts, SizesVary) {
  expect_all_like_eager([](const at::Tensor& x) { return x.relu(); }, true);
}

// view() fails in most other layouts.
TEST_P(OutputLayouts, APieceThatTakesAView) {
  expect_all_like_eager([](const at::Tensor& x) { return x.sin().view_symint({-1}).view_symint(x.sym_sizes()); });
}

// In another layout, explicit strides would read elements in another order, without an error.
TEST_P(OutputLayouts, APieceThatNamesStrides) {
  EXPECT_EQ(expect_all_like_eager([](const at::Tensor& x) {
              const at::Tensor same = x * 1;
              return x.as_strided({2, 8, 4, 6}, {192, 24, 6, 1}) + same.as_strided({2, 8, 4, 6}, {192, 1, 48, 8});
            }),
            0U);
}

// Random numbers are drawn in memory order.
TEST_P(OutputLayouts, APieceThatDraws) {
  EXPECT_EQ(expect_all_like_eager([](const at::Tensor& x) { return x * at::rand_like(x); }), 0U);
}

TEST_P(OutputLayouts, APieceThatWritesInPlace) {
  expect_all_like_eager([](const at::Tensor& x) {
    at::Tensor y = x;
    y.mul_(2).relu_();
    return y + 1;
  });
}

INSTANTIATE_TEST_SUITE_P(All, OutputLayouts,
                         testing::Combine(testing::Values(OutputLayout::ChannelsLast, OutputLayout::Reversed,
                                                          OutputLayout::Padded),
                                          testing::Values(Statement::True, Statement::None, Statement::False),
                                          testing::Values("aot_eager", "eager")));

// After a read, the code continues with tensors in eager mode's layout.
TEST(OutputLayoutsOfSegments, BehindARead) {
  for (const Statement statement : {Statement::True, Statement::None}) {
    const auto backend = std::make_shared<LayoutBackend>(OutputLayout::Reversed, statement);
    auto compiled = compile(
        [](const at::Tensor& x) {
          const at::Tensor y = x * 2;
          if ((y.sum() > 0).item<bool>()) return y.as_strided({6}, {1}) + 1;
          return y.sum(0);
        },
        {.backend = backend});
    const at::Tensor x = at::arange(6, at::kFloat).view({2, 3});
    for (int call = 0; call < 2; ++call) EXPECT_THAT(compiled(x), BitEqual((x * 2).view({6}) + 1));
    EXPECT_EQ(compiled.explain().refusal, "");
  }
}

// The first piece makes z, the second one writes to a view of z, and the third one uses z with its history. The pieces
// end where the function makes leaves.
TEST(OutputLayoutsOfPieces, WhatGetsAHistoryOnItsWay) {
  const auto function = [](const at::Tensor& x) {
    const at::Tensor z = at::zeros_like(x);
    const at::Tensor first = z.sin().requires_grad_();
    z.select(0, 1).add_(x.select(0, 1) * 3);
    const at::Tensor second = x.detach().cos().requires_grad_();
    return z.exp() * second + first;
  };
  const at::Tensor eager = at::rand({3, 4}, at::kDouble).requires_grad_();
  const at::Tensor expected = function(eager);
  expected.sum().backward();
  for (const char* inner : {"aot_eager", "eager"}) {
    for (const Statement statement : {Statement::True, Statement::None}) {
      const auto backend = std::make_shared<LayoutBackend>(OutputLayout::Reversed, statement, inner);
      auto compiled = compile(function, {.backend = backend, .fullgraph = true});
      const at::Tensor x = eager.detach().clone().requires_grad_();
      const at::Tensor result = compiled(x);
      EXPECT_THAT(result, BitEqual(expected));
      result.sum().backward();
      EXPECT_THAT(x.grad(), BitEqual(eager.grad())) << inner;
      EXPECT_EQ(backend->names().size(), 3U);
      EXPECT_EQ(backend->other_inputs() > 0, statement == Statement::True);
    }
  }
}

// compile() does not trust a back end's statement at a read.
TEST(OutputLayoutsOfSegments, AFalseStatementIsFoundBehindARead) {
  auto compiled = compile(
      [](const at::Tensor& x) {
        const at::Tensor y = x * 2;
        return (y.sum() > 0).item<bool>() ? y + 1 : y;
      },
      {.backend = std::make_shared<LayoutBackend>(OutputLayout::Reversed, Statement::False)});
  try {
    compiled(at::ones({2, 3}));
    ADD_FAILURE() << "no error";
  } catch (const BorderMismatch& error) {
    EXPECT_THAT(error.what(), HasSubstr("it has strides [3, 1] from 0 on, and has strides [1, 2] from 0 on now"));
  }
}

std::string error_of(const CompileOptions& options, const Middle& middle) {
  Convolutions net(middle);
  fakes::FakeDDP<Convolutions> ddp(net, kSecondPiece);
  auto compiled = compile(ddp, options);
  try {
    compiled(at::ones({2, 3, 4, 6}));
  } catch (const BackendMismatch& error) {
    return error.what();
  }
  return "no error";
}

at::Tensor relu(const at::Tensor& x) { return x.relu(); }

TEST(BackendStatement, AFalseOneIsReportedByTheCheck) {
  const auto lying = std::make_shared<LayoutBackend>(OutputLayout::ChannelsLast, Statement::False);
  EXPECT_EQ(
      error_of({.backend = lying, .check_backend = true}, relu),
      "the back end 'layout' states strides [192, 24, 6, 1] from 0 on of output 0 of graph submod_0, and gives "
      "strides [192, 1, 48, 8] from 0 on: what is compiled for the statement would copy it in each call. State what "
      "is true in CompiledGraph::outputs, or nothing");
  const auto silent = std::make_shared<LayoutBackend>(OutputLayout::ChannelsLast, Statement::None);
  EXPECT_THAT(error_of({.backend = silent, .check_backend = true}, relu),
              HasSubstr("and gives strides [192, 1, 48, 8]"));
  const auto honest = std::make_shared<LayoutBackend>(OutputLayout::ChannelsLast, Statement::True);
  EXPECT_EQ(error_of({.backend = honest, .check_backend = true}, relu), "no error");
  EXPECT_EQ(error_of({.backend = "aot_eager", .check_backend = true}, relu), "no error");
  EXPECT_EQ(error_of({.backend = "eager", .check_backend = true}, relu), "no error");
}

// A back end that runs the graph in eager mode and makes a statement of the test's choice about its outputs.
struct Stating final : Backend {
  std::string name() const override { return "stating"; }
  CompiledGraph compile(const BackendInput& input) override {
    CompiledGraph compiled = make_backend("eager")->compile(input);
    change(*compiled.outputs);
    return compiled;
  }
  std::function<void(std::vector<graph::ValueMeta>&)> change;
};

TEST(BackendStatement, SizesDtypeAndNumberAreNotItsToChange) {
  const auto message_for = [](const std::function<void(graph::TensorMeta&)>& change) {
    const auto backend = std::make_shared<Stating>();
    backend->change = [&](std::vector<graph::ValueMeta>& outputs) {
      graph::TensorMeta meta = *outputs.at(0).tensor();
      change(meta);
      outputs[0] = graph::ValueMeta(meta);
    };
    return error_of({.backend = backend}, relu);
  };
  EXPECT_EQ(message_for([](graph::TensorMeta& meta) { meta.dtype = at::kDouble; }),
            "the back end 'stating' states Double of output 0 of graph submod_0, which is Float");
  EXPECT_EQ(
      message_for([](graph::TensorMeta& meta) { meta.sizes[0] = 3; }),
      "the back end 'stating' states sizes [3, 8, 4, 6] and strides [192, 24, 6, 1] of output 0 of graph submod_0, "
      "which has sizes [2, 8, 4, 6]");
  const auto backend = std::make_shared<Stating>();
  backend->change = [](std::vector<graph::ValueMeta>& outputs) { outputs.clear(); };
  EXPECT_EQ(error_of({.backend = backend}, relu),
            "the back end 'stating' states 0 outputs of graph submod_0, which has 1");
}

// Two outputs of the graph share memory, and the caller uses both. If compile() copied one of them, a write to the
// other one would not reach the copy.
TEST(BackendStatement, SharedMemoryStaysAsItIs) {
  const auto call = [&](bool obeys, Statement statement) -> std::string {
    const auto backend = std::make_shared<LayoutBackend>(OutputLayout::Reversed, statement);
    backend->obeys = obeys;
    auto compiled = compile(
        [](const at::Tensor& x) {
          const at::Tensor y = x * 2;
          return std::tuple(y, y.select(0, 0));
        },
        {.backend = backend});
    try {
      const auto [whole, part] = compiled(at::ones({2, 3, 4}));
      part.fill_(5);
      return whole.select(0, 0).equal(at::full({3, 4}, 5.0)) ? "shared" : "apart";
    } catch (const BackendMismatch& error) {
      return error.what();
    }
  };
  EXPECT_EQ(call(true, Statement::True), "shared");
  EXPECT_EQ(call(true, Statement::None), "shared");
  EXPECT_EQ(
      call(false, Statement::True),
      "the back end 'layout' states strides [1, 2, 6] of output 0 of graph forward, which must lie as the graph's "
      "operators give it, because it shares memory with an argument or another output, or begins where only the "
      "data tell (BackendInput::fixed_layouts)");
  EXPECT_THAT(call(false, Statement::None),
              HasSubstr("gives strides [1, 2, 6] from 0 on of output 0 of graph forward"));
}

TEST(BackendStatement, WhatIsReturnedTwiceStaysOneTensor) {
  for (const Statement statement : {Statement::True, Statement::None}) {
    auto compiled = compile(
        [](const at::Tensor& x) {
          const at::Tensor y = x * 2;
          return std::tuple(y, y);
        },
        {.backend = std::make_shared<LayoutBackend>(OutputLayout::Reversed, statement)});
    const auto [first, second] = compiled(at::ones({2, 3}));
    EXPECT_TRUE(first.is_same(second));
  }
}

}  // namespace
}  // namespace rehearse::compiler
