// SPDX-License-Identifier: BSD-3-Clause
// Eager regions, inside and outside compiled functions.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/nn/modules/dropout.h>

#include <rehearse/compile/compile.h>
#include <rehearse/compile/counting_backend.h>
#include <rehearse/compile/eager_region.h>
#include <rehearse/compile/errors.h>
#include <rehearse_internal/capture/errors.h>

#include "bit_equal.h"
#include "region_elsewhere.h"

namespace rehearse::compiler {
namespace {

using rehearse::test::BitEqual;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::vector<std::string> lines;

void log_sum(const at::Tensor& x, int step) {
  lines.push_back(std::to_string(step) + ": " + std::to_string(x.sum().item<double>()));
}

// The code prints before its first operator, so a capture makes an empty graph, and then a graph with the operator.
at::Tensor printing(const at::Tensor& x) {
  eager_region([] { lines.emplace_back("woof"); });
  return x.sum();
}

TEST(EagerRegion, BeforeAnyOperatorMakesAnEmptyGraph) {
  lines.clear();
  const auto counting = std::make_shared<CountingBackend>();
  auto compiled = compile(printing, {.backend = counting});
  for (int call = 0; call < 3; ++call) EXPECT_THAT(compiled(at::ones({3})), BitEqual(at::full({}, 3.F)));
  EXPECT_EQ(counting->graphs(), 2U);
  EXPECT_EQ(compiled.stats().compiles, 1);
  EXPECT_EQ(compiled.stats().hits, 2);
  EXPECT_THAT(lines, ElementsAre("woof", "woof", "woof"));
}

TEST(EagerRegion, OutsideOfACaptureIsACall) {
  lines.clear();
  eager_region(log_sum, at::ones({2}), 7);
  EXPECT_THAT(lines, ElementsAre("7: 2.000000"));
  EXPECT_EQ(eager_region([](int a, int b) { return a + b; }, 2, 3), 5);
}

at::Tensor counted(const at::Tensor& x, std::int64_t& count) { return x * static_cast<double>(++count); }

// The object to which std::ref() refers is gone when the next call runs the region.
TEST(EagerRegion, WithAReferenceToAnArgumentOrALocalObject_RunsAsItIs) {
  auto of_argument = compile(
      [](const at::Tensor& x, std::int64_t& count) { return eager_region(counted, x * 2, std::ref(count)) + 1; });
  auto of_local = compile([](const at::Tensor& x, std::int64_t) {
    std::int64_t count = 5;
    return eager_region(counted, x * 2, std::ref(count)) + 1;
  });
  struct Counting {
    std::int64_t count = 5;
    at::Tensor operator()(const at::Tensor& x) { return eager_region(counted, x * 2, std::ref(count)) + 1; }
  };
  auto of_member = compile(Counting());
  std::int64_t count = 5, outside = 5;
  auto of_outside = compile([&](const at::Tensor& x) { return eager_region(counted, x * 2, std::ref(outside)) + 1; });
  for (int call = 0; call < 4; ++call) {
    EXPECT_EQ(of_argument(at::ones({1}), count).item<double>(), 13 + 2 * call);
    EXPECT_EQ(of_local(at::ones({1}), 0).item<double>(), 13);
    EXPECT_EQ(of_member(at::ones({1})).item<double>(), 13 + 2 * call);
    EXPECT_EQ(of_outside(at::ones({1})).item<double>(), 13 + 2 * call);
  }
  EXPECT_THAT(of_argument.explain().refusal, HasSubstr("eager_region() gets a reference to an argument, a local"));
  EXPECT_EQ(of_outside.stats().hits, 3);
}

// A region gets real tensors with their history. The code after the region gets the region's result with its history.
at::Tensor twice_through_region(const at::Tensor& x, const at::Tensor& w) {
  const at::Tensor y = (x * w).tanh();
  eager_region(log_sum, y, 1);
  const at::Tensor z = eager_region([](const at::Tensor& t) { return t.exp() * 2; }, y);
  return z * w + y;
}

class RegionOn : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Backend, RegionOn, ::testing::Values("eager", "aot_eager"));

TEST_P(RegionOn, GradientsGoThrough) {
  auto compiled = compile(twice_through_region, {.backend = GetParam()});
  for (int call = 0; call < 3; ++call) {
    lines.clear();
    const at::Tensor x = at::arange(4, at::kFloat) / 8 + call;
    const at::Tensor w = at::full({4}, 0.5F).requires_grad_(), w_eager = w.detach().clone().requires_grad_();
    const at::Tensor found = compiled(x, w), expected = twice_through_region(x, w_eager);
    EXPECT_THAT(found, BitEqual(expected));
    found.sum().backward();
    expected.sum().backward();
    EXPECT_THAT(w.grad(), BitEqual(w_eager.grad()));
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_EQ(lines[0], lines[1]);
  }
  EXPECT_EQ(compiled.stats().graphs, 3);
}

at::Tensor by_answer(const at::Tensor& x) {
  const auto [positive, limit] = eager_region(
      [](const at::Tensor& t) { return std::tuple(t.masked_select(t > 0), t.max().item<double>() > 2); }, x * 2);
  return limit ? positive.sum() : positive + 1;
}

TEST(EagerRegion, ItsNumbersAndSizesSelectBranches) {
  auto compiled = compile(by_answer, {.verify = Verify::Never});
  const std::vector<std::vector<float>> inputs = {{-1, 1, 0}, {-1, 0.5, 0}, {1, 1, 1}, {-1, 2, 0}, {-1, 1, 0}};
  for (const auto& input : inputs) {
    const at::Tensor x = at::tensor(input);
    EXPECT_THAT(compiled(x), BitEqual(by_answer(x)));
  }
  EXPECT_EQ(compiled.stats().compiles, 3);
  EXPECT_EQ(compiled.stats().hits, 2);
}

TEST(EagerRegion, RunsInTheGradientModeOfTheCodeAroundIt) {
  const auto function = [](const at::Tensor& w) {
    at::Tensor y = w * 2;
    {
      const at::NoGradGuard no_grad;
      y = y + eager_region([](const at::Tensor& t) { return t * 3; }, w);
    }
    return y * w;
  };
  auto compiled = compile(function);
  for (int call = 0; call < 3; ++call) {
    const at::Tensor w = at::full({2}, 1.5F).requires_grad_(), w_eager = w.detach().clone().requires_grad_();
    compiled(w).sum().backward();
    function(w_eager).sum().backward();
    EXPECT_THAT(w.grad(), BitEqual(w_eager.grad()));
  }
  EXPECT_EQ(compiled.stats().hits, 2);
}

// The region returns an alias of its argument. Later graphs could not know that the two share memory, so compile()
// refuses the function.
TEST(EagerRegion, AnAliasOfItsArgumentEndsTheCompilation) {
  const auto function = [](const at::Tensor& x) {
    at::Tensor y = x * 2;
    at::Tensor alias = eager_region([](const at::Tensor& t) { return t.view({-1}); }, y);
    alias.add_(1);
    return y + alias.view_as(y);
  };
  auto compiled = compile(function);
  const at::Tensor x = at::ones({2, 2});
  for (int call = 0; call < 2; ++call) EXPECT_THAT(compiled(x), BitEqual(function(x)));
  EXPECT_EQ(compiled.stats().compiles, 0);
  EXPECT_EQ(compiled.stats().eager_calls, 2);
  EXPECT_THAT(compiled.explain().refusal, HasSubstr("shares memory"));
}

// The result of each region is its argument, or a view of it. Writes through one of them are visible in the other, to
// autograd, too.
const std::vector<at::Tensor (*)(const at::Tensor&)> kAliases{
    [](const at::Tensor& x) {
      const at::Tensor h = x * 2;
      at::Tensor s = eager_region([](const at::Tensor& t) { return t; }, h);
      s.mul_(3);
      return h + s;
    },
    [](const at::Tensor& x) {
      at::Tensor h = x * 2;
      const at::Tensor s = eager_region([](const at::Tensor& t) { return t.t(); }, h);
      h.mul_(3);
      return s;
    },
    [](const at::Tensor& x) {
      const at::Tensor h = x * 2;
      at::Tensor s = eager_region([](const at::Tensor& t) { return t[0]; }, h);
      s.relu_();
      return h;
    },
    [](const at::Tensor& x) {
      const at::Tensor h = x * 2;
      return eager_region([](const at::Tensor& t) { return t; }, h).is_same(h) ? h + 1 : h - 1;
    },
    [](const at::Tensor& x) {
      return eager_region([](const at::Tensor& t) { return t; }, x).is_same(x) ? x + 1 : x - 1;
    },
    [](const at::Tensor& x) {
      const at::Tensor h = x * 2, twin = h.contiguous();  // two objects of the captured code for one tensor
      at::Tensor s = eager_region([](const at::Tensor& t) { return t; }, h);
      s.mul_(3);
      return twin + h;
    },
    [](const at::Tensor& x) {  // the nearest code without an alias
      at::Tensor h = x * 2;
      const at::Tensor s = eager_region([](const at::Tensor& t) { return t.clone(); }, h);
      h.mul_(3);
      return s + h;
    },
};

TEST(EagerRegion, AnAliasOfItsArgumentIsTheSameTensorToAutograd) {
  for (std::size_t i = 0; i < kAliases.size(); ++i) {
    for (const Verify verify : {Verify::FirstHit, Verify::Always}) {
      auto compiled = compile(kAliases[i], {.verify = verify});
      for (int call = 0; call < 3; ++call) {
        const at::Tensor x = (at::arange(4, at::kFloat).view({2, 2}) - 1.5).requires_grad_();
        const at::Tensor twin = x.detach().clone().requires_grad_();
        const at::Tensor actual = compiled(x), expected = kAliases[i](twin);
        EXPECT_THAT(actual, BitEqual(expected)) << i << " in call " << call;
        actual.sum().backward();
        expected.sum().backward();
        EXPECT_THAT(x.grad(), BitEqual(twin.grad())) << i << " in call " << call;
      }
    }
  }
}

// In evaluation, dropout() returns its argument itself.
TEST(EagerRegion, ScriptCodeThatReturnsItsArgumentGivesTheTensorItself) {
  torch::jit::Module module("Drop");
  module.register_attribute("training", c10::BoolType::get(), true);
  module.define("def forward(self, x):\n  return torch.dropout(x, 0.5, self.training)\n");
  const auto code = [&module](const at::Tensor& x) {
    const at::Tensor h = x * 2;
    at::Tensor s = module.forward({h}).toTensor();
    s.mul_(3);
    return h + s;
  };
  auto compiled = compile(code);
  for (int call = 0; call < 6; ++call) {
    module.train(call < 3 || call == 5);
    const at::Tensor x = at::ones({4}).requires_grad_(), twin = at::ones({4}).requires_grad_();
    at::manual_seed(call);
    compiled(x).sum().backward();
    at::manual_seed(call);
    code(twin).sum().backward();
    EXPECT_THAT(x.grad(), BitEqual(twin.grad())) << call;
  }
}

TEST(EagerRegion, ARefusalThatTheCodeCatches_StillCounts) {
  auto compiled = compile(
      [](const at::Tensor& x) {
        try {
          return eager_region([](const at::Tensor& t) { return t * 2; }, x);
        } catch (const std::exception&) {
          return x * 5;
        }
      },
      {.fullgraph = true});
  for (int call = 0; call < 2; ++call) EXPECT_THROW(compiled(at::ones({2})), capture::FakeError);
}

TEST(EagerRegion, UndefinedArgumentsStayUndefined) {
  const auto function = [](const at::Tensor& x) {
    const at::Tensor y = eager_region(
        [](const at::Tensor& weight, const at::Tensor& t) { return weight.defined() ? t * weight : t * 3; },
        at::Tensor(), x + 1);
    return eager_region([](const at::Tensor& t, const at::Tensor& bias) { return bias.defined() ? t + bias : -t; }, y,
                        at::Tensor());
  };
  auto compiled = compile(function);
  for (int call = 0; call < 3; ++call) EXPECT_THAT(compiled(at::ones({2})), BitEqual(at::full({2}, -6.F)));
  EXPECT_EQ(compiled.stats().hits, 2);
}

// region_elsewhere.cpp has a function of the same name, so the types of the two lambdas have one name.
std::string identity_of_lambda() {
  const auto region = [] {};
  return TypedRegion<decltype(region)>(region, {}).identity();
}

TEST(EagerRegion, FunctionsOfOneNameInTwoFilesAreTwoRegions) {
  EXPECT_EQ(identity_of_lambda(), identity_of_lambda());
  EXPECT_NE(identity_of_lambda(), identity_of_lambda_elsewhere());
}

TEST(EagerRegion, WithFullgraphIsAnErrorWithTheLine) {
  auto compiled = compile(printing, {.fullgraph = true});
  EXPECT_THROW(compiled(at::ones({3})), capture::NotCapturable);
}

// The code behind the region would run as if nothing had changed.
TEST(EagerRegion, ThatLeavesAModeChanged_IsAnError) {
  const auto dropout = std::make_shared<torch::nn::DropoutImpl>(1.0);
  auto of_module = compile([dropout](const at::Tensor& x) {
    eager_region([](torch::nn::DropoutImpl& module) { module.eval(); }, std::ref(*dropout));
    return dropout->forward(x) + 1;
  });
  EXPECT_THAT([&] { of_module(at::ones({1})); }, ThrowsMessage<CompileError>(HasSubstr("eager_region() changes ")));
  auto of_thread = compile([](const at::Tensor& x) {
    eager_region([] { at::GradMode::set_enabled(false); });
    return x * 3;
  });
  EXPECT_THAT([&] { of_thread(at::ones({1})); },
              ThrowsMessage<CompileError>(HasSubstr("eager_region() changes grad mode from on to off")));
  at::GradMode::set_enabled(true);
  auto switches_back = compile([dropout](const at::Tensor& x) {
    dropout->train();
    const at::Tensor y = eager_region(
        [](const at::Tensor& t, torch::nn::DropoutImpl& module) {
          module.eval();
          const at::Tensor kept = module.forward(t);
          module.train();
          return kept;
        },
        x, std::ref(*dropout));
    return y + 1;
  });
  for (int call = 0; call < 4; ++call) EXPECT_EQ(switches_back(at::ones({1})).item<double>(), 2);
}

TEST(EagerRegion, ItsErrorsComeToTheCaller) {
  static bool throws = false;
  throws = true;
  auto compiled = compile([](const at::Tensor& x) {
    const at::Tensor y = x + 1;
    eager_region(
        [](const at::Tensor&) {
          if (throws) throw std::runtime_error("disk full");
        },
        y);
    return y * 2;
  });
  EXPECT_THROW(compiled(at::ones({2})), std::runtime_error);
  throws = false;
  for (int call = 0; call < 2; ++call) EXPECT_THAT(compiled(at::ones({2})), BitEqual(at::full({2}, 4.F)));
}

}  // namespace
}  // namespace rehearse::compiler
