// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <torch/jit.h>
#include <torch/script.h>

// A script module for tests, with parameters, buffers, a mode, and methods of many kinds.
namespace rehearse::compiler::script_network {

using Script = torch::jit::Module;

inline constexpr const char* kMethods = R"(
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

inline Script network() {
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

inline at::Tensor call(const Script& module, const char* method, std::vector<c10::IValue> arguments) {
  return module.get_method(method)(std::move(arguments)).toTensor();
}

}  // namespace rehearse::compiler::script_network
