// SPDX-License-Identifier: BSD-3-Clause
// What C++ does to tensors and to LibTorch's state without an operator: no graph can repeat it. It is refused, even if
// the code catches the refusal, and the function runs as it is.
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
#include <rehearse/compile/eager_region.h>
#include <rehearse_internal/capture/errors.h>
#include <rehearse_internal/capture/fake_errors.h>

namespace rehearse::compiler::refused {
namespace {

using testing::HasSubstr;

// What a function finds outside of its arguments.
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

// Whether the function ends without an exception, as code asks that goes on either way.
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
    {"requires_grad_() of what was computed",
     [](World&, const at::Tensor& x) {
       at::Tensor y = x.detach() * 2;
       y.requires_grad_();
       return y + 1;
     },
     "requires_grad_()"},
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
       const at::Tensor y = at::linear(x, world.layer->weight);
       return y.is_leaf() ? y * 2 : y * 3;
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
       return works([&] { y.register_hook([](const at::Tensor&) {}); }) ? y * 2 : y * 3;
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

// Three calls, each behind the generator's same place.
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
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(found[i].equal(expected[i])) << i;
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
    EXPECT_GT(at::rand({2}).sum().item<float>(), 0);  // of the real generator
  }
}

// Behind a read, the rest of the call runs as it is: what it does to an argument is done to the caller's.
TEST(Refused, BehindAReadTheCallersArgumentIsChanged) {
  const auto function = [](const at::Tensor& x, const at::Tensor& y) {
    const bool positive = (y.sum() > 0).item<bool>();
    x.requires_grad_(positive);
    const bool has_gradient = x.grad().defined();
    return x.is_leaf() && !has_gradient ? y * 2 : y * 3;
  };
  auto compiled = compile(function);
  for (const double value : {1.0, -1.0, 1.0}) {
    const at::Tensor mine = at::ones({2}), eagers = at::ones({2}), y = at::full({2}, value);
    mine.mutable_grad() = eagers.mutable_grad() = value > 0 ? at::zeros({2}) : at::Tensor();
    EXPECT_TRUE(compiled(mine, y).equal(function(eagers, y)));
    EXPECT_EQ(mine.requires_grad(), eagers.requires_grad());
  }
}

// What a graph gave in front of the read is no view: nothing in the call can answer. Later calls run as they
// are.
TEST(Refused, QuestionsBehindARead) {
  using Question = bool (*)(const at::Tensor& rows);
  for (const Question question : {Question([](const at::Tensor& rows) { return rows.is_view(); }),
                                  Question([](const at::Tensor& rows) { return rows._base().dim() == 3; })}) {
    for (const bool is_caught : {false, true}) {
      const auto function = [=](const at::Tensor& x) {
        const at::Tensor rows = x.unsqueeze(0).repeat_interleave(2, 0);
        const at::Tensor scaled = x.sum().item<float>() > 0 ? rows * 2 : rows;
        if (!is_caught) return question(rows) ? scaled : scaled + 1;
        try {
          return question(rows) ? scaled : scaled + 1;
        } catch (const std::exception&) {
          return scaled * 3;
        }
      };
      auto compiled = compile(function);
      const at::Tensor x = at::ones({3}).requires_grad_();
      EXPECT_THROW(compiled(x), capture::NotCapturable);
      for (int call = 0; call < 2; ++call) EXPECT_TRUE(compiled(x).equal(function(x)));
    }
  }
}

TEST(Refused, QuestionsBehindAReadAndARefusal) {
  const auto function = [](const at::Tensor& x) {
    const at::Tensor rows = x.unsqueeze(0).repeat_interleave(2, 0);
    const at::Tensor scaled = x.sum().item<float>() > 0 ? rows * 2 : rows;
    const at::Tensor copy = x.clone();
    copy.requires_grad_();
    return copy.is_leaf() && scaled.is_view() ? scaled : rows.is_view() ? scaled + copy : scaled - copy;
  };
  auto compiled = compile(function);
  const at::Tensor x = at::ones({3});
  EXPECT_THROW(compiled(x), capture::NotCapturable);
  EXPECT_TRUE(compiled(x).equal(function(x)));
}

// LibTorch reads such an index while it looks at the sizes of the tensor, which the read makes a real one.
TEST(Refused, SizesOfWhatIsIndexedByANumberFromData) {
  const auto function = [](const at::Tensor& x) {
    at::Tensor y = at::cat({x, x}, 1);
    for (const at::Tensor& row : x.unbind(0)) {
      y.index_put_({(row > 0).sum()}, at::scalar_tensor(2, at::kDouble));
      x.set_data(x.detach() * 2);
    }
    return y;
  };
  auto compiled = compile(function, {.dynamic = true});
  for (const std::int64_t columns : {2, 3, 2}) {
    const auto argument = [&] { return at::ones({columns + 1, columns}, at::kDouble); };
    EXPECT_TRUE(compiled(argument()).equal(function(argument())));
  }
}

// Nobody tells when a parameter that the function finds gets another gradient.
TEST(Refused, GradientsOfWhatAFunctionFinds) {
  for (const bool fullgraph : {false, true}) {
    torch::nn::Linear layer(2, 2);
    const auto norm = [&] { return layer->weight.grad().defined() ? layer->weight.grad().norm() : at::zeros({}); };
    auto compiled = compile(norm, {.fullgraph = fullgraph});
    for (int call = 0; call < 6; ++call) {
      if (fullgraph) {
        EXPECT_THROW(compiled(), capture::NotCapturable);
      } else {
        EXPECT_TRUE(compiled().equal(norm()));
      }
      if (call % 3 == 2) layer->zero_grad();
      (layer(at::ones({1, 2})) * (call + 1)).sum().backward();
    }
  }
}

TEST(Refused, BehindARefusalAHistoryIsGone) {
  const auto function = [](const at::Tensor& x) {
    x.detach_();
    return x.requires_grad() ? x * 2 : x * 3;
  };
  auto compiled = compile(function);
  for (int call = 0; call < 2; ++call) {
    EXPECT_TRUE(compiled(at::ones({2}).requires_grad_()).equal(function(at::ones({2}).requires_grad_())));
  }
}

TEST(Refused, BehindARefusalAHistoryComesThroughAView) {
  const auto function = [](const at::Tensor& x, const at::Tensor& leaf) {
    x.detach_();
    x.select(0, 1).add_(leaf);
    return x.requires_grad() ? x * 2 : x * 3;
  };
  auto compiled = compile(function);
  for (int call = 0; call < 2; ++call) {
    const at::Tensor leaf = at::ones({}).requires_grad_();
    EXPECT_TRUE(compiled(at::ones({2}), leaf).equal(function(at::ones({2}), leaf)));
  }
}

// Eager mode refuses to use the parts, which nobody does.
TEST(Refused, BehindAChangeOfWhatPartsAreViewsOf) {
  const auto function = [](const at::Tensor& x, const at::Tensor& other) {
    for (const at::Tensor& part : x.unbind(0)) {
      EXPECT_EQ(part.dim(), 0);
      x.mul_(2);
      other.detach_();
    }
    return x.sum();
  };
  auto compiled = compile(function);
  for (int call = 0; call < 2; ++call) {
    const at::Tensor leaf = at::ones({3}).requires_grad_();
    compiled(leaf * 1, at::ones({2})).backward();
    EXPECT_TRUE(leaf.grad().equal(at::full({3}, 8.0)));
  }
}

TEST(Refused, BehindARegionOfAViewWithAHistory) {
  const auto function = [](const at::Tensor& x) {
    const at::Tensor y = eager_region([](const at::Tensor& given) { return given * 2; }, x);
    try {
      return y * x.detach()[0].data_ptr<float>()[0];
    } catch (const std::exception&) {
      return y + x;
    }
  };
  auto compiled = compile(function);
  for (int call = 0; call < 2; ++call) {
    const at::Tensor x = (at::ones({2, 3}).requires_grad_() * 3)[1];
    EXPECT_TRUE(compiled(x).equal(function(x)));
  }
  EXPECT_THAT(compiled.explain().refusal, HasSubstr("memory"));
}

// What is written there has a history afterwards, and so has all that is in its memory.
TEST(Refused, BehindARefusalArgumentsGetHistories) {
  const auto function = [](const at::Tensor& x, const at::Tensor& y, const at::Tensor& view, const at::Tensor& leaf) {
    x.requires_grad_();
    y.sub_(leaf, 0.5);
    return std::vector<at::Tensor>{y, view, y * 2};
  };
  const auto gradient_of = [](auto& called) {
    const at::Tensor x = at::ones({2}), y = at::ones({2}), leaf = at::ones({2}).requires_grad_();
    const at::Tensor view = y.view({2});
    at::Tensor sum = at::zeros({});
    for (const at::Tensor& each : called(x, y, view, leaf)) {
      EXPECT_TRUE(each.requires_grad());
      sum = sum + each.sum();
    }
    sum.backward();
    return leaf.grad().clone();
  };
  auto compiled = compile(function);
  for (int call = 0; call < 2; ++call) EXPECT_TRUE(gradient_of(compiled).equal(gradient_of(function)));
}

// The rest of such a call has fakes of its arguments, with the memory of the real ones. If a size is symbolic, asking
// for the memory is an error, even if the code catches it.
TEST(Refused, MemoryBehindTheEndOfACapture) {
  const auto function = [](const at::Tensor& x) {
    const bool positive = (x.sum() > 0).item<bool>();
    const at::Tensor y = positive ? x * 2 : x;
    y.detach().requires_grad_();
    x.mul_(3);
    return works([&] { return x.data_ptr<float>()[0]; }) ? y * x.data_ptr<float>()[1] : y * 5;
  };
  const at::Tensor both = at::arange(2, 8, at::kFloat);
  for (const at::Tensor& x : {at::ones({2}), both.narrow(0, 3, 2)}) {
    const at::Tensor twin = x.clone();
    EXPECT_TRUE(compile(function)(x).equal(function(twin)));
    EXPECT_TRUE(x.equal(twin));
  }
  auto with_symbols = compile(function, {.dynamic = true});
  EXPECT_THROW(with_symbols(at::ones({2})), capture::FakeError);
  EXPECT_TRUE(with_symbols(at::ones({2})).equal(at::full({2}, 6.0)));  // it runs as it is from then on
}

// item() ends a graph, which is an error in a function that must be one.
TEST(Refused, AReadAndACatchInOneGraph) {
  const auto function = [](const at::Tensor& x) { return works([&] { x.sum().item<float>(); }) ? x * 2 : x * 3; };
  auto compiled = compile(function, {.fullgraph = true});
  EXPECT_THROW(compiled(at::ones({2})), capture::DataDependentRead);
}

// What any code may catch: an operator's own error is the same as without a capture.
TEST(Refused, AnOperatorsErrorMayBeCaught) {
  const auto function = [](const at::Tensor& x) { return works([&] { x.view({7}); }) ? x * 2 : x * 3; };
  auto compiled = compile(function, {.fullgraph = true});
  for (int call = 0; call < 2; ++call) EXPECT_TRUE(compiled(at::ones({2})).equal(at::full({2}, 3.0)));
}

}  // namespace
}  // namespace rehearse::compiler::refused
