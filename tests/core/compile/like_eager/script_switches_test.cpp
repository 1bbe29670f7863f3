// SPDX-License-Identifier: BSD-3-Clause
// Script modules that compiled code switches or changes: each call sees it, as in eager mode.
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/jit.h>
#include <torch/script.h>

#include <rehearse/compile/compile.h>

namespace rehearse::compiler::script_switches_test {
namespace {

using Script = torch::jit::Module;

constexpr const char* kMethods = R"(
def forward(self, x):
    self.calls += 1
    return torch.dropout(torch.matmul(x, self.weight), 0.5, self.training).tanh()
def normalized(self, x):
    return torch.batch_norm(x, None, None, self.mean, self.var, self.training, 0.1, 1e-5, False) * self.weight[0]
def several(self, x, step: int):
    y = torch.matmul(x, self.weight)
    return (y, [y.sin(), x.cos()], {"sum": y.sum(0)}, step * 2, "text", None)
def branch(self, x):
    if bool(x.sum() > 0):
        return x.exp()
    return x * 2
def of_list(self, x: List[Tensor]):
    return torch.cat(x).matmul(self.weight)
def grow(self, x: List[Tensor], y):
    x.append(y.relu())
    return y * 2
def same(self, x):
    return x
def keep(self, x):
    self.mean = x.mean(0)
    return x + 1
def fail(self, x):
    assert bool(x.sum() > 1e6), "too small"
    return x
)";

Script network() {
  at::manual_seed(5);
  Script module("Net");
  module.register_attribute("training", c10::BoolType::get(), true);
  module.register_attribute("calls", c10::IntType::get(), 0);
  module.register_parameter("weight", at::randn({3, 3}).requires_grad_(), false);
  module.register_buffer("mean", at::zeros({3}));
  module.register_buffer("var", at::ones({3}));
  module.define(kMethods);
  return module;
}

at::Tensor call(const Script& module, const char* method, std::vector<c10::IValue> arguments) {
  return module.get_method(method)(std::move(arguments)).toTensor();
}

struct Program {
  const char* name;
  at::Tensor (*run)(Script& module, const at::Tensor& x);
  bool is_compiled = true;  // otherwise all calls run eagerly
};

TEST(ScriptCalls, OfAModuleThatTheCodeSwitches) {
  using Function = at::Tensor (*)(Script&, const at::Tensor&, std::int64_t number);
  const Function functions[] = {[](Script& m, const at::Tensor& x, std::int64_t number) {
                                  m.train(number % 2 == 0);
                                  return m.forward({x}).toTensor() + 1;
                                },
                                [](Script& m, const at::Tensor& x, std::int64_t) {
                                  m.eval();
                                  const at::Tensor y = m.forward({x * 2}).toTensor();
                                  m.train();
                                  return y + m.forward({x}).toTensor();
                                },
                                [](Script& m, const at::Tensor& x, std::int64_t) {
                                  m.eval();
                                  return m.forward({x}).toTensor();
                                },
                                [](Script& m, const at::Tensor& x, std::int64_t) {
                                  m.eval();
                                  return x * 2;
                                },
                                [](Script& m, const at::Tensor& x, std::int64_t) {
                                  const at::Tensor y = call(m, "normalized", {x}) * 2;
                                  m.setattr("calls", m.attr("calls").toInt() + 1);
                                  return y;
                                }};
  for (const Function function : functions) {
    Script mine = network(), twins = network();
    auto compiled = compile([&](const at::Tensor& x, std::int64_t number) { return function(mine, x, number); });
    for (int number = 0; number < 8; ++number) {
      if (number == 5) mine.train(), twins.train();
      const at::Tensor x = at::arange(12, at::kFloat).view({4, 3});
      at::manual_seed(7);
      const at::Tensor found = compiled(x, number / 2 % 2);
      at::manual_seed(7);
      EXPECT_TRUE(found.equal(function(twins, x, number / 2 % 2))) << (&function - functions) << " call " << number;
      EXPECT_EQ(mine.is_training(), twins.is_training());
      EXPECT_EQ(mine.attr("calls").toInt(), twins.attr("calls").toInt()) << "call " << number;
    }
  }
}

}  // namespace
}  // namespace rehearse::compiler::script_switches_test
