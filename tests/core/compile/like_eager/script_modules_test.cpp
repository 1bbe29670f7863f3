// SPDX-License-Identifier: BSD-3-Clause
// TorchScript code in compiled functions. It runs eagerly between two graphs, like an eager region.
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/mobile/import.h>
#include <torch/csrc/jit/mobile/module.h>
#include <torch/jit.h>
#include <torch/nn/modules/linear.h>
#include <torch/script.h>

#include <rehearse/capture/opaque.h>
#include <rehearse/compile/compile.h>
#include <rehearse/compile/eager_region.h>
#include <rehearse/compile/errors.h>
#include <rehearse/parallel/checkpoint.h>
#include <rehearse_internal/capture/errors.h>

#include "bit_equal.h"
#include "core/compile/like_eager/script_network.h"

namespace rehearse::compiler::script_modules_test {
namespace {

using namespace script_network;
using rehearse::test::BitEqual;
using ::testing::HasSubstr;
using Tensors = std::vector<at::Tensor>;

constexpr const char* kWithGenerator = R"(
def same(generator: Generator):
    return generator
def noise(x, generator: Generator):
    return x * torch.rand([3], generator=generator)
)";

struct Program {
  const char* name;
  at::Tensor (*run)(Script& module, const at::Tensor& x);
  bool is_compiled = true;  // otherwise all calls run eagerly
};

at::Tensor with_checkpoint(Script& module, const at::Tensor& x) {
  const auto code = [&module](const at::Tensor& h) { return call(module, "of_list", {Tensors{h * 2}}) + 1; };
  return checkpoint(code, x.sin()) * 2;
}

// For the names of the tests.
void PrintTo(const Program& program, std::ostream* out) { *out << program.name; }

const Program kPrograms[] = {
    {"Forward", [](Script& m, const at::Tensor& x) { return m.forward({x * 2}).toTensor() * 2; }},
    {"First", [](Script& m, const at::Tensor& x) { return m.forward({x}).toTensor().sin(); }},
    {"DropoutsAround",
     [](Script& m, const at::Tensor& x) {
       const at::Tensor y = m.forward({at::dropout(x, 0.5, true)}).toTensor();
       return at::dropout(y, 0.5, true) * 2;
     }},
    {"Twice",
     [](Script& m, const at::Tensor& x) {
       const at::Tensor y = m.forward({x.sin()}).toTensor();
       return m.forward({y * 2}).toTensor() + y;
     }},
    {"BatchNorm", [](Script& m, const at::Tensor& x) { return call(m, "normalized", {x + 1}) * 2; }},
    {"SeveralResults",
     [](Script& m, const at::Tensor& x) {
       const auto values = m.get_method("several")({x.sin(), 3}).toTupleRef().elements().vec();
       at::Tensor sum = values[0].toTensor() * values[3].toInt() + values[1].toTensorVector()[1];
       for (const auto& entry : values[2].toGenericDict()) sum = sum + entry.value().toTensor();
       return values[5].isNone() && values[4].toStringRef() == "text" ? sum * 2 : sum;
     }},
    {"NumberInAPlace", [](Script& m, const at::Tensor& x) { return call(m, "branch", {x.sin() - 0.1}) * 3; }},
    {"ListArgument", [](Script& m, const at::Tensor& x) { return call(m, "of_list", {Tensors{x * 2, x}}) * 2; }},
    {"ParameterOutside",
     [](Script& m, const at::Tensor& x) {
       const at::Tensor weight = m.attr("weight").toTensor();
       return m.forward({x.matmul(weight)}).toTensor().matmul(weight);
     }},
    {"BufferWrittenBefore",
     [](Script& m, const at::Tensor& x) {
       m.attr("mean").toTensor().add_(1);
       return call(m, "normalized", {x + 1}) * m.attr("mean").toTensor();
     }},
    {"WithoutGrad",
     [](Script& m, const at::Tensor& x) {
       const at::NoGradGuard none;
       return m.forward({x * 2}).toTensor() * 2;
     }},
    {"InACheckpoint", &with_checkpoint},
    {"InARegion",
     [](Script& m, const at::Tensor& x) {
       const auto run = [](Script& of, const at::Tensor& h) { return of.forward({h}).toTensor(); };
       return eager_region(run, std::ref(m), at::Tensor(x * 2)) * 2;
     }},
    {"Asynchronous",
     [](Script& m, const at::Tensor& x) {
       const auto future = m.get_method("forward").run_async({x * 2});
       future->wait();
       return future->value().toTensor() * 2;
     }},
    {"ReturnsItsArgument", [](Script& m, const at::Tensor& x) { return call(m, "same", {x * 2}).mul_(2) + 1; }, false},
    {"ChangesAList",
     [](Script& m, const at::Tensor& x) {
       c10::List<at::Tensor> list({x * 2});
       const at::Tensor y = call(m, "grow", {list, x.sin()});
       return at::stack({list.get(0), list.get(list.size() - 1), y}).sin();
     },
     false},
    {"ChangesAListInTheRest",
     [](Script& m, const at::Tensor& x) {
       c10::List<at::Tensor> list({x, x * 2});
       const at::Tensor y = call(m, "grow", {list, x}) + call(m, "grow", {list, x.sin()});
       return at::stack({list.get(0), list.get(1), list.get(2), list.get(3), y}).sin();
     },
     false},
    {"UnderItsOwnAutocast",
     [](Script& m, const at::Tensor& x) {
       const at::Tensor y = x * 2;
       at::autocast::set_autocast_enabled(at::kCPU, true);
       const at::Tensor z = m.forward({y}).toTensor();
       at::autocast::set_autocast_enabled(at::kCPU, false);
       at::autocast::clear_cache();
       return z * 2;
     },
     false},
    {"InAHook",
     [](Script& m, const at::Tensor& x) {
       const at::Tensor y = x * 2;
       if (y.requires_grad()) y.register_hook([&m](const at::Tensor& g) { return m.forward({g}).toTensor(); });
       return y.sin();
     },
     false},
    {"KeepsATensorInAnAttribute", [](Script& m, const at::Tensor& x) { return call(m, "keep", {x * 2}) * 2; }},
    {"AGeneratorInBetween",
     [](Script&, const at::Tensor& x) {
       static const auto code = torch::jit::compile(kWithGenerator);
       const c10::IValue generator = code->get_function("same")({at::detail::createCPUGenerator(5)});
       return code->get_function("noise")({x * 2, generator}).toTensor() * 2;
     },
     false},
};

class ScriptModules : public ::testing::TestWithParam<std::tuple<Program, Verify>> {};
INSTANTIATE_TEST_SUITE_P(, ScriptModules,
                         ::testing::Combine(::testing::ValuesIn(kPrograms),
                                            ::testing::Values(Verify::FirstHit, Verify::Always)),
                         [](const auto& info) {
                           const bool always = std::get<Verify>(info.param) == Verify::Always;
                           return std::string(std::get<Program>(info.param).name) + (always ? "_Always" : "");
                         });

struct Effects {
  Tensors tensors;
  std::string error;
};

template <class Function>
Effects effects_of(Function&& function, Script& module, int number) {
  at::manual_seed(7 + static_cast<std::uint64_t>(number));
  const at::Tensor x = (at::arange(12, at::kFloat).view({4, 3}) - 4 + number % 3).div(7).requires_grad_(number > 0);
  Effects effects;
  try {
    const at::Tensor result = function(x);
    effects.tensors = {result.detach().clone()};
    if (result.requires_grad()) result.sum().backward();
  } catch (const std::exception& error) {
    effects.error = error.what();
  }
  effects.tensors.push_back(x.grad());
  for (const at::Tensor& parameter : module.parameters()) effects.tensors.push_back(parameter.grad());
  for (const at::Tensor& buffer : module.buffers()) effects.tensors.push_back(buffer.detach().clone());
  effects.tensors.push_back(at::full({}, module.attr("calls").toInt()));
  effects.tensors.push_back(at::rand({2}));
  for (const at::Tensor& parameter : module.parameters()) parameter.mutable_grad() = at::Tensor();
  return effects;
}

void expect_equal(const Effects& found, const Effects& expected, int number) {
  EXPECT_EQ(found.error, "");
  EXPECT_EQ(expected.error, "");
  ASSERT_EQ(found.tensors.size(), expected.tensors.size()) << "call " << number;
  for (std::size_t i = 0; i < found.tensors.size(); ++i) {
    const at::Tensor &left = found.tensors[i], &right = expected.tensors[i];
    ASSERT_EQ(left.defined(), right.defined()) << "call " << number << ", tensor " << i;
    if (!left.defined()) continue;
    EXPECT_THAT(left, BitEqual(right)) << "call " << number << ", tensor " << i;
  }
}

// The JIT's plan changes in the first calls. The modules switch between train() and eval().
TEST_P(ScriptModules, RunAsInEagerMode) {
  const auto& [program, verify] = GetParam();
  Script mine = network(), twin = network();
  auto compiled = compile([&mine, run = program.run](const at::Tensor& x) { return run(mine, x); },
                          {.backend = verify == Verify::Always ? "eager" : "aot_eager", .verify = verify});
  for (int number = 0; number < 6; ++number) {
    for (Script* each : {&mine, &twin}) each->train(number % 4 < 2);
    const Effects found = effects_of(compiled, mine, number);
    expect_equal(found, effects_of([&](const at::Tensor& x) { return program.run(twin, x); }, twin, number), number);
  }
  EXPECT_EQ(compiled.explain().refusal.empty(), program.is_compiled) << compiled.explain().text();
  if (program.is_compiled) {
    EXPECT_EQ(compiled.stats().eager_calls, 0) << compiled.explain().text();
  }
}

// Compares four calls of two functions that do the same, the first one compiled.
template <class Mine, class Twin>
void expect_like_eager(Mine& mine, const Twin& twin, const std::function<void(int)>& before = [](int) {}) {
  for (int number = 0; number < 4; ++number) {
    before(number);
    const at::Tensor x = at::arange(12, at::kFloat).view({4, 3}) - number;
    at::manual_seed(7);
    const at::Tensor found = mine(x);
    at::manual_seed(7);
    EXPECT_THAT(found, BitEqual(twin(x))) << "call " << number;
  }
}

std::string error_of(const std::function<void()>& function) {
  try {
    function();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "none";
}

struct Holder : torch::nn::Module {
  Holder() : first(register_module("first", torch::nn::Linear(3, 3))), script(network()) {
    register_parameter("weight", script.attr("weight").toTensor());
  }
  at::Tensor forward(const at::Tensor& x) { return script.forward({first(x)}).toTensor() * 2; }
  torch::nn::Linear first;
  Script script;
};

TEST(ScriptCalls, InTheForwardOfAModule) {
  at::manual_seed(3);
  const auto mine = std::make_shared<Holder>();
  at::manual_seed(3);
  const auto twin = std::make_shared<Holder>();
  auto compiled = compile(mine);
  expect_like_eager(
      compiled, [&](const at::Tensor& x) { return twin->forward(x); },
      [&](int number) {
        for (auto* each : {mine.get(), twin.get()}) each->script.train(number % 2 == 0);
      });
  EXPECT_EQ(compiled.stats().graphs, 4) << compiled.explain().text();  // two for each mode
}

// The code itself switches the module or gives it an attribute. Later calls do not run the code.
TEST(ScriptCalls, OfAFrozenModule) {
  Script module = network();
  module.eval();
  const Script frozen = torch::jit::freeze(module);
  const auto function = [&](const at::Tensor& x) { return Script(frozen).forward({x * 2}).toTensor() * 2; };
  auto compiled = compile(function);
  expect_like_eager(compiled, function);
  EXPECT_EQ(compiled.stats().compiles, 1);
}

// Two functions with equal arguments differ only in their code.
TEST(ScriptCalls, OfFunctions) {
  const auto code = torch::jit::compile("def f(x):\n    return x.sin()\ndef g(x):\n    return x.cos()\n");
  const auto function = [&](const at::Tensor& x) {
    return code->get_function(x.dim() == 2 ? "f" : "g")({x * 2}).toTensor() * code->run_method("g", x + 1).toTensor();
  };
  auto compiled = compile(function);
  expect_like_eager(compiled, function);
  std::string name = "f";
  auto named = compile([&](const at::Tensor& x) { return code->get_function(name)({x * 2}).toTensor(); },
                       {.verify = Verify::Always});
  expect_like_eager(
      named, [&](const at::Tensor& x) { return code->get_function(name)({x * 2}).toTensor(); },
      [&](int number) { name = number % 2 == 0 ? "f" : "g"; });
}

TEST(ScriptCalls, OfAModuleThatIsReplaced) {
  Script module = network(), other = network();
  other.attr("weight").toTensor().detach().mul_(2);
  const Script first = module;
  const auto function = [&](const at::Tensor& x) { return module.forward({x}).toTensor(); };
  auto forgets = compile(function);
  forgets(at::ones({4, 3}));
  module = other;
  EXPECT_THROW(forgets(at::ones({4, 3})), StaleCapture);
  auto always = compile(function, {.verify = Verify::Always});
  expect_like_eager(always, function, [&](int number) { module = number % 2 == 0 ? first : other; });
}

TEST(ScriptCalls, InAnOpaqueFunction) {
  Script module = network();
  static Script* called = nullptr;
  called = &module;
  const auto function = [](const at::Tensor& x) {
    const auto body = [](const at::Tensor& h) { return called->forward({h}).toTensor(); };
    return opaque(body, x * 2) * 2;
  };
  auto compiled = compile(function, {.fullgraph = true});
  expect_like_eager(compiled, function, [&](int number) { module.train(number % 2 == 0); });
  EXPECT_EQ(compiled.stats().compiles, 1);
}

TEST(ScriptCalls, OfAMobileModule) {
  std::stringstream file;
  network()._save_for_mobile(file);
  torch::jit::mobile::Module module = torch::jit::_load_for_mobile(file);
  const auto function = [&](const at::Tensor& x) { return module.forward({x * 2}).toTensor() * 2; };
  auto compiled = compile(function);
  expect_like_eager(compiled, function, [&](int number) { module.train(number % 2 == 0); });
  auto whole = compile(function, {.fullgraph = true});
  EXPECT_THAT(error_of([&] { whole(at::ones({4, 3})); }), HasSubstr("a module of the mobile interpreter is called"));
}

TEST(ScriptCalls, InOneGraph_AreRefusedByName) {
  Script module = network();
  auto compiled = compile([&](const at::Tensor& x) { return module.forward({x}).toTensor(); }, {.fullgraph = true});
  EXPECT_THAT(
      error_of([&] { compiled(at::ones({4, 3})); }),
      HasSubstr("the script module __torch__.Net is called in a function that must be one graph (fullgraph), at "
                "script_modules_test.cpp"));
}

TEST(ScriptCalls, WithACapturedTensorAsAnAttribute_AreRefused) {
  Script module = network();
  const auto function = [&](const at::Tensor& x) {
    module.setattr("mean", x.mean(0));
    return call(module, "normalized", {x});
  };
  auto compiled = compile(function);
  EXPECT_THAT(error_of([&] { compiled(at::ones({4, 3})); }), HasSubstr("has a captured tensor as an attribute"));
  expect_like_eager(compiled, function);
}

TEST(ScriptCalls, ThatThrow) {
  Script module = network();
  auto compiled = compile([&](const at::Tensor& x) { return call(module, "fail", {x * 2}) * 2; });
  for (const double scale : {1.0, 1e6, 1.0, 1e6}) {
    const at::Tensor x = at::full({4, 3}, scale);
    if (scale > 1) {
      EXPECT_THAT(compiled(x), BitEqual(x * 4));
    } else {
      EXPECT_THAT(error_of([&] { compiled(x); }), HasSubstr("too small"));
    }
  }
}

}  // namespace
}  // namespace rehearse::compiler::script_modules_test
