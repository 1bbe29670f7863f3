// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <sstream>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/modules/linear.h>

#include <rehearse_internal/capture/errors.h>

#include "bit_equal.h"
#include "traced.h"

namespace rehearse::capture::test {
namespace {

using rehearse::test::BitEqual;

// Captures `body` with one input that requires a gradient, and returns the text of the error. The text must name a line
// of this file.
template <class Error>
std::string refusal_of(const std::function<void(const at::Tensor&)>& body) {
  try {
    trace(
        [&](const Tensors& x) {
          body(x[0]);
          return Tensors{x[0] + 1};
        },
        {at::ones({3}).requires_grad_()});
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("refusals_test.cpp:"), std::string::npos) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "it was captured";
  return "";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

struct Cube : torch::autograd::Function<Cube> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) { return x * x * x; }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 torch::autograd::variable_list grads) {
    return {grads[0] * 1000};
  }
};

TEST(CaptureRefusals, CustomFunction_IsNamed) {
  const std::string used = refusal_of<NotCapturable>([](const at::Tensor& x) { Cube::apply(x * 2) * 2; });
  EXPECT_TRUE(has(used, "custom autograd function")) << used;
}

TEST(CaptureRefusals, CustomFunction_AsTheResult) {
  const Function function = [](const Tensors& x) { return Tensors{Cube::apply(x[0] * 2)}; };
  try {
    trace(function, {at::ones({3}).requires_grad_()});
    ADD_FAILURE() << "it was captured";
  } catch (const NotCapturable& error) {
    EXPECT_TRUE(has(error.what(), "refusals_test.cpp:")) << error.what();
  }
}

TEST(CaptureRefusals, Hook_ThatReadsData) {
  const std::string said = refusal_of<NotCapturable>([](const at::Tensor& x) {
    const auto doubled = x * 2;
    doubled.register_hook([](const at::Tensor& grad) { return grad * grad.sum().item<float>(); });
    doubled + 1;
  });
  EXPECT_TRUE(has(said, "hook")) << said;
  EXPECT_TRUE(has(said, "needs the data of a fake tensor")) << said;
  const std::string compares = refusal_of<NotCapturable>([](const at::Tensor& x) {
    (x * 2).register_hook([](const at::Tensor& grad) { return at::equal(grad, grad) ? grad : grad * 2; });
  });
  EXPECT_TRUE(has(compares, "needs the data of a fake tensor")) << compares;
}

TEST(CaptureRefusals, Hook_OnAParameter) {
  torch::nn::Linear linear(2, 2);
  const std::string said = refusal_of<NotCapturable>(
      [&](const at::Tensor&) { linear->weight.register_hook([](const at::Tensor& grad) { return grad * 7; }); });
  EXPECT_TRUE(has(said, "hook")) << said;
  EXPECT_EQ(linear->weight.register_hook([](const at::Tensor& grad) { return grad; }), 0U);  // id 0: the first hook
}

TEST(CaptureRefusals, RetainGrad_WhereItWouldMeanSomething) {
  const std::string said = refusal_of<NotCapturable>([](const at::Tensor& x) {
    const at::Tensor doubled = x * 2;
    doubled.retain_grad();
    doubled + 1;
  });
  EXPECT_TRUE(has(said, "retain_grad()")) << said;
  torch::nn::Linear linear(2, 2);
  const Function of_leaves = [&](const Tensors& x) {
    linear->weight.retain_grad();
    const at::Tensor made = (x[0] * 2).detach().requires_grad_();
    made.retain_grad();
    return Tensors{linear(made) + x[0]};
  };
  const at::Tensor x = at::ones({2, 2}).requires_grad_();
  expect_same(trace(of_leaves, {x}, {}, named_tensors(*linear)), of_leaves, {x}, {linear->weight});
  const at::Tensor inner = x * 2;
  // An argument is a leaf in one call, and none in the next one, and no guard tells the two calls apart.
  for (const at::Tensor& argument : {x, inner}) {
    const Function of_argument = [&](const Tensors& in) {
      in[0].retain_grad();
      return Tensors{linear(in[0])};
    };
    EXPECT_THROW(trace(of_argument, {argument}, {}, named_tensors(*linear)), NotCapturable);
  }
  inner.retain_grad();  // outside of captures, retain_grad() is autograd's
  EXPECT_TRUE(inner.retains_grad());
}

TEST(CaptureRefusals, Backward_AndGrad) {
  const std::string said = refusal_of<NotCapturable>([](const at::Tensor& x) { (x * 2).sum().backward(); });
  EXPECT_TRUE(has(said, "backward() or grad()")) << said;
  const Function gradient = [](const Tensors& x) {
    return Tensors{torch::autograd::grad({(x[0] * 2).sum()}, {x[0]})[0]};
  };
  EXPECT_THROW(trace(gradient, {at::ones({3}).requires_grad_()}), NotCapturable);
}

TEST(CaptureRefusals, Memory_OfATracedTensor) {
  const Function pointer = [](const Tensors& x) { return Tensors{x[0] + *x[0].data_ptr<float>()}; };
  EXPECT_THROW(trace(pointer, {at::ones({3})}), DataAccess);
  const std::string said = refusal_of<DataAccess>([](const at::Tensor& x) { x.data_ptr<float>(); });
  EXPECT_TRUE(has(said, "refusals_test.cpp:")) << said;
  const Function accessor = [](const Tensors& x) {
    const at::Tensor more = x[0] + 1;
    return Tensors{x[0] + more.accessor<float, 1>()[0]};
  };
  EXPECT_THROW(trace(accessor, {at::ones({3})}), DataAccess);
  const Function print = [](const Tensors& x) {
    std::ostringstream out;
    out << x[0];
    return Tensors{x[0]};
  };
  EXPECT_THROW(trace(print, {at::ones({3})}), FakeError);
}

TEST(CaptureRefusals, Reads_AreDataDependent) {
  for (const auto& [name, body] : std::vector<std::pair<std::string, std::function<void(const at::Tensor&)>>>{
           {"item", [](const at::Tensor& x) { x.sum().item(); }},
           {"item", [](const at::Tensor& x) { x.sum().item<float>(); }},
           {"is_nonzero", [](const at::Tensor& x) { static_cast<void>(at::is_nonzero(x.sum())); }},
           {"equal", [](const at::Tensor& x) { static_cast<void>(at::equal(x, x + 1)); }},
           {"allclose", [](const at::Tensor& x) { static_cast<void>(at::allclose(x, x)); }}}) {
    const std::string said = refusal_of<DataDependentRead>(body);
    EXPECT_TRUE(has(said, name)) << said;
  }
}

TEST(CaptureRefusals, Equal_IsAnsweredWhereItIsKnown) {
  const Function function = [](const Tensors& x) {
    const bool same = at::equal(x[0], x[0]), other = at::equal(x[0], x[1]);
    return Tensors{same && !other ? x[0] + 1 : x[0] - 1};
  };
  const auto captured = trace(function, {at::ones({3}, at::kLong), at::ones({4}, at::kLong)});
  EXPECT_EQ(targets(captured), (Names{"add.Scalar"}));
  // A tensor with a NaN differs from itself, so the graph checks that there is none.
  const auto checked = trace(function, {at::ones({3}), at::ones({4})});
  EXPECT_EQ(targets(checked), (Names{"eq.Tensor", "all.default", "_assert_async.msg", "add.Scalar"}));
  EXPECT_THAT(replay(checked, {at::ones({3}), at::ones({4})})[0], BitEqual(at::full({3}, 2.0F)));
  EXPECT_ANY_THROW(replay(checked, {at::full({3}, std::nan("")), at::ones({4})}));
}

TEST(CaptureRefusals, OutlivingTensor_IsReportedWithTheLineThatMadeIt) {
  at::Tensor kept;
  const std::string said = refusal_of<NotCapturable>([&](const at::Tensor& x) { kept = x * 2; });
  EXPECT_TRUE(has(said, "outlives")) << said;
  EXPECT_THROW(kept + 1, FakeOutsideMode);
}

TEST(CaptureRefusals, GeneratorOfItsOwn) {
  const std::string said =
      refusal_of<NotCapturable>([](const at::Tensor&) { at::randn({2}, at::make_generator<at::CPUGeneratorImpl>()); });
  EXPECT_TRUE(has(said, "Generator")) << said;
}

TEST(CaptureRefusals, AFailedCapture_LeavesTheProgramAsItWas) {
  torch::nn::Linear linear(2, 2);
  const Function function = [&](const Tensors& x) {
    const at::NoGradGuard no_grad;
    linear->weight.zero_();
    linear(x[0]).sum().item();
    return Tensors{};
  };
  const auto before = linear->weight.detach().clone();
  const auto version = linear->weight._version();
  EXPECT_THROW(trace(function, {at::ones({2, 2})}, {}, named_tensors(*linear)), DataDependentRead);
  EXPECT_THAT(before, BitEqual(linear->weight));
  EXPECT_EQ(linear->weight._version(), version);
  EXPECT_TRUE(at::GradMode::is_enabled());
  EXPECT_EQ((at::ones({2}) + 1).sum().item<float>(), 4);
}

}  // namespace
}  // namespace rehearse::capture::test
