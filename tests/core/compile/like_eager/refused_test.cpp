// SPDX-License-Identifier: BSD-3-Clause
// C++ code can change tensors and LibTorch's state, or ask about them, without an operator. If no graph can repeat the
// change or the question, the compiler refuses the function. Without fullgraph, the function then runs in eager mode.
// This also holds if the code catches the refusal.
#include <functional>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/DefaultDtype.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/linear.h>

#include <rehearse/compile/compile.h>
#include <rehearse/shapes/errors.h>
#include <rehearse_internal/capture/errors.h>

#include "bit_equal.h"

namespace rehearse::compiler::refused {
namespace {

using rehearse::test::BitEqual;
using testing::HasSubstr;

// Objects that a function finds outside its arguments.
struct World {
  torch::nn::Linear layer = [] {
    at::manual_seed(7);
    return torch::nn::Linear(3, 3);
  }();
  at::Tensor kept = at::ones({3});
};

struct Program {
  const char* name;
  at::Tensor (*run)(World& world, const at::Tensor& x);
  const char* refusal;
};

at::Generator default_generator() { return at::detail::getDefaultCPUGenerator(); }

template <class Function>
bool works(Function&& function) {
  try {
    function();
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

const Program kPrograms[] = {
    {"requires_grad_() of an argument",
     [](World&, const at::Tensor& x) {
       x.requires_grad_(!x.requires_grad());
       return x * 2;
     },
     "requires_grad_()"},
    {"requires_grad_() of what has views",
     [](World&, const at::Tensor& x) {
       const at::Tensor y = x.detach() * 2, view = y.view({3});
       y.requires_grad_();
       return y + view;
     },
     "has views"},
    {"unsqueeze_() of a tensor that the function finds",
     [](World& world, const at::Tensor& x) {
       world.kept.unsqueeze_(0);
       const std::int64_t rows = world.kept.size(0);
       world.kept.squeeze_(0);
       return x * rows;
     },
     "unsqueeze_() changes the sizes or strides"},
    {"t_() of a parameter",
     [](World& world, const at::Tensor& x) {
       const at::NoGradGuard no_grad;
       at::Tensor weight = world.layer->weight;
       weight.t_();
       const at::Tensor y = weight.is_contiguous() ? x * 2 : x * 3;
       weight.t_();
       return y;
     },
     "t_() changes the sizes or strides"},
    {"unsqueeze_() of a constant",
     [](World&, const at::Tensor& x) {
       at::Tensor constant = at::tensor({1.0F, 2.0F, 3.0F});
       constant.unsqueeze_(0);
       return x * constant.size(0) + constant.dim();
     },
     "unsqueeze_() changes the sizes or strides"},
    {"requires_grad_() of a parameter",
     [](World& world, const at::Tensor& x) {
       world.layer->weight.requires_grad_(!world.layer->weight.requires_grad());
       return at::linear(x, world.layer->weight);
     },
     "requires_grad_()"},
    {"set_requires_grad() of a parameter",
     [](World& world, const at::Tensor& x) {
       at::Tensor weight = world.layer->weight;
       const at::Tensor y = at::linear(x, weight);
       weight.set_requires_grad(!weight.requires_grad());
       return y;
     },
     "requires grad was changed"},
    {"detach_()",
     [](World& world, const at::Tensor& x) {
       at::Tensor y = at::linear(x, world.layer->weight);
       y.detach_();
       return y * 2;
     },
     "detach_()"},
    {"set_data()",
     [](World& world, const at::Tensor& x) {
       world.kept.set_data(x.detach() + 1);
       return x * world.kept;
     },
     "set_data()"},
    {"manual_seed()",
     [](World&, const at::Tensor& x) {
       at::manual_seed(3);
       return x + at::rand({3});
     },
     "default generator is seeded"},
    {"the generator's state",
     [](World&, const at::Tensor& x) {
       at::Generator generator = default_generator();
       const at::Tensor state = generator.get_state();
       const at::Tensor first = at::rand({3});
       generator.set_state(state);
       return x + first - at::rand({3});
     },
     "default generator is asked for its state"},
    {"zero_grad()",
     [](World& world, const at::Tensor& x) {
       world.layer->zero_grad();
       return at::linear(x, world.layer->weight);
     },
     "zero_grad() is called"},
    {"a gradient that is replaced",
     [](World& world, const at::Tensor& x) {
       const at::Tensor y = at::linear(x, world.layer->weight);
       world.layer->weight.mutable_grad().reset();
       return y;
     },
     "the gradient of"},
    {"a gradient of a parameter",
     [](World& world, const at::Tensor& x) {
       return at::linear(x, world.layer->weight) + world.layer->weight.grad().sum();
     },
     "the gradient of"},
    {"a gradient of an argument", [](World&, const at::Tensor& x) { return x.grad().defined() ? x * 2 : x * 3; },
     "the gradient of the argument"},
    {"the default dtype, for a while",
     [](World&, const at::Tensor& x) {
       c10::set_default_dtype(caffe2::TypeMeta::Make<double>());
       const at::Tensor y = x + at::ones({3});
       c10::set_default_dtype(caffe2::TypeMeta::Make<float>());
       return y;
     },
     "the default dtype changes"},
    {"is_leaf()",
     [](World& world, const at::Tensor& x) {
       at::Tensor y = at::zeros({3});
       const at::Tensor view = y.slice(0, 0, 2);
       y.add_(at::linear(x, world.layer->weight));
       return view.is_leaf() ? y * 2 : y * 3;
     },
     "is_leaf() is asked"},
    {"grad_fn()",
     [](World& world, const at::Tensor& x) {
       const at::Tensor y = at::linear(x, world.layer->weight);
       return y.grad_fn() == nullptr ? y * 2 : y * 3;
     },
     "grad_fn() is asked"},
    {"is_view()", [](World&, const at::Tensor& x) { return x.t().is_view() ? x * 2 : x * 3; }, "is_view() is asked"},
    {"_version()",
     [](World&, const at::Tensor& x) {
       const at::Tensor y = x * 2;
       y.add_(1);
       return y._version() == 1 ? y * 2 : y * 3;
     },
     "_version()"},
    {"data_ptr() and a catch",
     [](World&, const at::Tensor& x) { return works([&] { return x.detach().data_ptr<float>()[0]; }) ? x * 2 : x * 3; },
     "The memory of a fake tensor"},
    {"a hook and a catch",
     [](World& world, const at::Tensor& x) {
       const at::Tensor y = at::linear(x, world.layer->weight);
       return works([&] { world.layer->weight.register_hook([](const at::Tensor&) {}); }) ? y * 2 : y * 3;
     },
     "a hook is registered"},
    {"grad() and a catch",
     [](World& world, const at::Tensor& x) {
       const at::Tensor y = at::linear(x, world.layer->weight).sum();
       return works([&] { torch::autograd::grad({y}, {world.layer->weight}, {}, true); }) ? x * 2 : x * 3;
     },
     "grad() is called"},
    {"grad() of given gradients and a catch",
     [](World& world, const at::Tensor& x) {
       const at::Tensor y = at::linear(x, world.layer->weight);
       return works([&] { torch::autograd::grad({y}, {world.layer->weight}, {at::ones({3})}, true); }) ? x * 2 : x * 3;
     },
     "grad() is called"},
    {"a size known only from data, and a catch",
     [](World&, const at::Tensor& x) {
       std::int64_t rows = 0;
       works([&] { rows = (x > -100).nonzero().size(0); });
       return x * rows;
     },
     "data"},
    {"a catch that throws something else",
     [](World&, const at::Tensor& x) {
       const bool has_data = works([&] { return x.detach().data_ptr<float>()[0]; });
       if (!has_data) throw std::logic_error("no data");
       return x * 2;
     },
     "The memory of a fake tensor"},
};

// Calls `function` three times, each time with a fixed seed. Returns the results, and everything that the calls may
// change.
std::vector<at::Tensor> three_calls(const std::function<at::Tensor(const at::Tensor&)>& function, World& world) {
  std::vector<at::Tensor> seen;
  for (int call = 0; call < 3; ++call) {
    at::manual_seed(20 + static_cast<std::uint64_t>(call));
    at::Tensor x = at::arange(3, at::kFloat) + call;
    if (call > 0) world.layer->weight.mutable_grad() = at::full({3, 3}, call, at::kFloat);
    const at::Tensor result = function(x);
    for (const at::Tensor& each : {result, x, world.layer->weight, world.kept}) {
      seen.push_back(each.detach().clone());
      seen.push_back(at::full({}, each.requires_grad(), at::kBool));
    }
    seen.push_back(world.layer->weight.grad().defined() ? world.layer->weight.grad().clone() : at::zeros({0}));
    seen.push_back(at::rand({2}));
  }
  return seen;
}

TEST(Refused, RunsAsItIsWithTheLineInTheReason) {
  for (const Program& program : kPrograms) {
    SCOPED_TRACE(program.name);
    World world, twin;
    world.layer->weight.mutable_grad() = twin.layer->weight.mutable_grad() = at::zeros({3, 3});
    auto compiled = compile([&](const at::Tensor& x) { return program.run(world, x); });
    const auto found = three_calls([&](const at::Tensor& x) { return compiled(x); }, world);
    const auto expected = three_calls([&](const at::Tensor& x) { return program.run(twin, x); }, twin);
    EXPECT_THAT(found, BitEqual(expected));
    EXPECT_THAT(compiled.explain().refusal, HasSubstr(program.refusal));
    EXPECT_EQ(compiled.stats().eager_calls, 3);
  }
}

TEST(Refused, FailsWhereItMustBeOneGraph) {
  for (const Program& program : kPrograms) {
    SCOPED_TRACE(program.name);
    World world;
    world.layer->weight.mutable_grad() = at::zeros({3, 3});
    auto compiled = compile([&](const at::Tensor& x) { return program.run(world, x); }, {.fullgraph = true});
    try {
      compiled(at::arange(3, at::kFloat));
      FAIL();
    } catch (const std::exception& error) {
      EXPECT_THAT(error.what(), HasSubstr(program.refusal));
    }
    EXPECT_EQ(c10::get_default_dtype_as_scalartype(), at::kFloat);
    EXPECT_GT(at::rand({2}).sum().item<float>(), 0);  // from the real generator
  }
}

// Nothing notifies the compiler when a parameter that the function finds gets another gradient.
TEST(Refused, GradientsOfWhatAFunctionFinds) {
  for (const bool fullgraph : {false, true}) {
    torch::nn::Linear layer(2, 2);
    const auto norm = [&] { return layer->weight.grad().defined() ? layer->weight.grad().norm() : at::zeros({}); };
    auto compiled = compile(norm, {.fullgraph = fullgraph});
    for (int call = 0; call < 6; ++call) {
      if (fullgraph) {
        EXPECT_THROW(compiled(), capture::NotCapturable);
      } else {
        EXPECT_THAT(compiled(), BitEqual(norm()));
      }
      if (call % 3 == 2) layer->zero_grad();
      (layer(at::ones({1, 2})) * (call + 1)).sum().backward();
    }
  }
}

// item() ends a graph, which is an error with fullgraph.
TEST(Refused, AReadAndACatchInOneGraph) {
  const auto function = [](const at::Tensor& x) { return works([&] { x.sum().item<float>(); }) ? x * 2 : x * 3; };
  auto compiled = compile(function, {.fullgraph = true});
  EXPECT_THROW(compiled(at::ones({2})), capture::DataDependentRead);
}

// The code computes (size - 2)^1000. As a polynomial in the size, this power has coefficients of more than 64 bits. For
// size 3, its value is 1.
TEST(Refused, ArithmeticThatASymbolicSizeCannotDo) {
  const auto function = [](const at::Tensor& x) {
    c10::SymInt product = 1;
    const auto multiply = [&] {
      for (int i = 0; i < 1000; ++i) product = product * (x.sym_size(0) - 2);
    };
    return works(multiply) ? x * 2 : x * 3;
  };
  auto compiled = compile(function, {.dynamic = true});
  for (int call = 0; call < 2; ++call) EXPECT_THAT(compiled(at::ones({3})), BitEqual(at::full({3}, 2.0)));
  EXPECT_THAT(compiled.explain().refusal, HasSubstr("64 bits do not hold"));
  auto whole = compile(function, {.dynamic = true, .fullgraph = true});
  EXPECT_THROW(whole(at::ones({3})), shapes::ShapeError);
}

TEST(Refused, OperatorsThatLeaveTheSizesOfAFoundTensor_AreCaptured) {
  const at::Tensor found = at::ones({3});
  const auto function = [&](const at::Tensor& x) {
    found.squeeze_();
    found.resize_({3});
    return x * found.size(0);
  };
  auto compiled = compile(function, {.fullgraph = true});
  for (int call = 0; call < 2; ++call) EXPECT_THAT(compiled(at::ones({3})), BitEqual(at::full({3}, 3.0)));
}

// Code may catch an operator's own error, which is the same as without a capture.
TEST(Refused, AnOperatorsErrorMayBeCaught) {
  const auto function = [](const at::Tensor& x) { return works([&] { x.view({7}); }) ? x * 2 : x * 3; };
  auto compiled = compile(function, {.fullgraph = true});
  for (int call = 0; call < 2; ++call) EXPECT_THAT(compiled(at::ones({2})), BitEqual(at::full({2}, 3.0)));
}

// The text of the error has the numbers of a tensor. Neither the error nor the place refuses the function.
TEST(Refused, AnOperatorsErrorThatPrintsATensor_IsEagerModes) {
  const auto function = [](const at::Tensor& x, const at::Tensor& y) {
    const bool is_positive = (x.sum() > 0).item<bool>();
    return at::meshgrid({x * 3, y}, "ij")[is_positive ? 0 : 1] * 2;
  };
  const at::Tensor x = at::ones({2}), square = at::full({2, 2}, 7.0);
  const auto error_of = [&](auto& called) -> std::string {
    try {
      called(x, square);
    } catch (const c10::Error& error) {
      return error.what_without_backtrace();
    }
    return "nothing";
  };
  auto compiled = compile(function);
  for (int call = 0; call < 3; ++call) {
    EXPECT_EQ(error_of(compiled), error_of(function));
    EXPECT_THAT(compiled(x, x), BitEqual(function(x, x)));
  }
  EXPECT_THAT(error_of(compiled), HasSubstr(" 7"));
  EXPECT_EQ(compiled.explain().refusal, "");
  EXPECT_GT(compiled.stats().hits, 0);
}

}  // namespace
}  // namespace rehearse::compiler::refused
