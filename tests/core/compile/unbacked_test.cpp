// SPDX-License-Identifier: BSD-3-Clause
// Sizes and numbers that are known only at run time, under aot_eager. Results and gradients have the bits of the
// "eager" back end. If a fact that the code states is false, both back ends throw the same error.
#include <memory>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <rehearse/capture/forward_capture.h>
#include <rehearse/compile/compile.h>
#include <rehearse/fakes/fake_ddp.h>
#include <rehearse_internal/compile/aot_eager.h>

#include "bit_equal.h"
#include "compile/aot/aot_program.h"

namespace rehearse::compiler {
namespace {

using rehearse::test::BitEqual;
using testing::ElementsAre;

at::Tensor whole(std::vector<std::int64_t> values) { return at::tensor(values, at::kLong); }

struct Outcome {
  at::Tensor result, gradient;
  std::string error;
};

template <class Callable>
Outcome run(Callable& callable, const at::Tensor& x, const at::Tensor& y) {
  Outcome outcome;
  const at::Tensor leaf = x.detach().clone().requires_grad_();
  try {
    outcome.result = callable(leaf, y);
    outcome.result.sum().backward();
    outcome.gradient = leaf.grad();
  } catch (const c10::Error& error) {
    outcome.error = error.what_without_backtrace();
  }
  return outcome;
}

using Function = at::Tensor (*)(const at::Tensor& x, const at::Tensor& y);

// Compiles `function` once with each back end and calls it with each of `data`. Both back ends must give the same
// results and errors, and aot_eager must not fall back to eager autograd. Returns for each call whether it throws.
std::vector<bool> refused(Function function, const std::vector<at::Tensor>& data) {
  const auto aot = std::make_shared<AotEagerBackend>();
  auto compiled = compile(function, {.backend = aot, .fullgraph = true});
  auto eager = compile(function, {.backend = "eager", .fullgraph = true});
  std::vector<bool> refused;
  const at::Tensor x = at::randn({6, 3});
  for (const at::Tensor& y : data) {
    const Outcome mine = run(compiled, x, y), expected = run(eager, x, y);
    EXPECT_EQ(mine.error, expected.error);
    EXPECT_EQ(mine.result.defined(), expected.result.defined());
    if (mine.result.defined() && expected.result.defined()) {
      EXPECT_THAT(mine.result, BitEqual(expected.result)) << y;
      EXPECT_THAT(mine.gradient, BitEqual(expected.gradient)) << y;
    }
    refused.push_back(!mine.error.empty());
  }
  EXPECT_EQ(compiled.stats().compiles, 1);
  EXPECT_EQ(aot->graphs().size(), 1U);
  EXPECT_EQ(aot->graphs().front()->eager_because, "");
  return refused;
}

const std::vector<at::Tensor> kNumbers = {whole({4}), whole({0}), whole({1}), whole({6})};

TEST(AotUnbacked, ANumberThatScales) {
  const auto function = +[](const at::Tensor& x, const at::Tensor& y) { return x.exp() * at::Scalar(sym_item(y)); };
  EXPECT_THAT(refused(function, kNumbers), testing::Each(false));
}

TEST(AotUnbacked, ANumberOfRows) {
  const auto function = +[](const at::Tensor& x, const at::Tensor& y) {
    const auto rows = sym_item(y);
    return x.sum(0).expand_symint({rows, 3}).sin() + at::ones_symint({rows, 3});
  };
  EXPECT_THAT(refused(function, kNumbers), testing::Each(false));
}

TEST(AotUnbacked, NumbersOfAList) {
  const auto function = +[](const at::Tensor& x, const at::Tensor& y) {
    const auto sizes = sym_tolist(y);
    return x.unsqueeze(0).expand_symint({sizes[0] * sizes[1], 6, 3}) * at::Scalar(sizes[1]);
  };
  EXPECT_THAT(refused(function, {whole({2, 3}), whole({0, 3}), whole({1, 1})}), testing::Each(false));
}

TEST(AotUnbacked, RowsThatDataChooses) {
  const auto function =
      +[](const at::Tensor& x, const at::Tensor& y) { return x.index_select(0, y.nonzero().select(1, 0)).exp(); };
  EXPECT_THAT(refused(function, {whole({1, 0, 2}), whole({0, 0, 0}), whole({0, 0, 7})}), testing::Each(false));
}

TEST(AotUnbacked, AnUpperBound) {
  const auto function = +[](const at::Tensor& x, const at::Tensor& y) {
    const auto number = sym_item(y);
    TORCH_SYM_CHECK(number.sym_le(4), "at most four");
    return x * at::Scalar(number + 1);
  };
  EXPECT_THAT(refused(function, {whole({4}), whole({5}), whole({0}), whole({1000})}),
              ElementsAre(false, true, false, true));
}

// The code checks that `number` is 5. After the check, the graph uses 5 in place of `number`. The check itself reads
// `number` from the data.
TEST(AotUnbacked, AValue) {
  const auto function = +[](const at::Tensor& x, const at::Tensor& y) {
    const auto number = sym_item(y);
    TORCH_SYM_CHECK((number * 2).sym_eq(10), "five");
    return x * at::Scalar(number);
  };
  EXPECT_THAT(refused(function, {whole({5}), whole({4}), whole({5})}), ElementsAre(false, true, false));
}

TEST(AotUnbacked, AFactAboutTheSizeOfAResult) {
  const auto function = +[](const at::Tensor& x, const at::Tensor& y) {
    const auto places = y.nonzero();
    TORCH_SYM_CHECK(places.sym_size(0).sym_eq(2), "two places");
    return x * places.sum();
  };
  EXPECT_THAT(refused(function, {whole({0, 1, 3}), whole({0, 1, 0}), whole({9, 0, 9})}),
              ElementsAre(false, true, false));
}

TEST(AotUnbacked, FactsOfTwoNumbers) {
  const auto function = +[](const at::Tensor& x, const at::Tensor& y) {
    const auto numbers = sym_tolist(y);
    TORCH_SYM_CHECK(numbers[0].sym_lt(numbers[1]).sym_or(numbers[1].sym_eq(0)), "in order, or none");
    return x * at::Scalar(numbers[0] + numbers[1]);
  };
  EXPECT_THAT(refused(function, {whole({2, 3}), whole({3, 3}), whole({5, 0}), whole({4, 1})}),
              ElementsAre(false, true, false, true));
}

// The first piece reads `number` from the data, and the last piece checks that it is 3.
struct StatedLaterImpl : torch::nn::Module {
  StatedLaterImpl()
      : weight1(register_parameter("weight1", at::randn({512, 512}))),
        weight2(register_parameter("weight2", at::randn({512, 512}))) {}

  at::Tensor forward(const at::Tensor& x, const at::Tensor& y) {
    const auto number = sym_item(y);
    const auto first = at::matmul(x * at::Scalar(number), weight1);
    const auto second = at::matmul(first, weight2);
    TORCH_SYM_CHECK(number.sym_eq(3), "three");
    return second * at::Scalar(number);
  }

  at::Tensor weight1, weight2;
};
TORCH_MODULE(StatedLater);

TEST(AotUnbacked, AFactAboutANumberOfAnEarlierPiece) {
  StatedLater net;
  fakes::FakeDDP<StatedLater> ddp(net, 1);
  const auto aot = std::make_shared<AotEagerBackend>();
  auto compiled = compile(ddp, {.backend = aot, .fullgraph = true});
  auto eager = compile(ddp, {.backend = "eager", .fullgraph = true});
  const at::Tensor x = at::randn({2, 512});
  for (const std::int64_t number : {3, 2}) {
    const Outcome mine = run(compiled, x, whole({number})), expected = run(eager, x, whole({number}));
    EXPECT_EQ(mine.error, expected.error);
    EXPECT_EQ(mine.error.empty(), number == 3);
    if (number != 3) continue;
    EXPECT_THAT(mine.result, BitEqual(expected.result));
    EXPECT_THAT(mine.gradient, BitEqual(expected.gradient));
  }
  ASSERT_EQ(aot->graphs().size(), 2U);
  for (const auto& graph : aot->graphs()) EXPECT_EQ(graph->eager_because, "");
}

// If a gradient has another layout than in the recorded backward, aot_eager records a second backward, with the same
// symbols.
TEST(AotUnbacked, ABackwardForAnotherForm) {
  const auto function = [](const at::Tensor& x, const at::Tensor& y) {
    return x.expand_symint({sym_item(y), 6, 3}).exp();
  };
  const auto aot = std::make_shared<AotEagerBackend>();
  auto compiled = compile(function, {.backend = aot, .fullgraph = true});
  for (const std::int64_t count : {4, 2}) {
    const at::Tensor x = at::randn({6, 3}).requires_grad_(), y = whole({count});
    const at::Tensor tangent = at::randn({3, 6, count}).permute({2, 1, 0});
    compiled(x, y).backward(tangent);
    const at::Tensor mine = x.grad().clone();
    x.mutable_grad().reset();
    function(x, y).backward(tangent);
    EXPECT_THAT(mine, BitEqual(x.grad()));
  }
  EXPECT_EQ(aot->graphs().front()->program->backwards().recorded(), 2U);
}

}  // namespace
}  // namespace rehearse::compiler
