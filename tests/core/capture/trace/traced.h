// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <rehearse/capture/forward_capture.h>

namespace rehearse::capture::test {

using Tensors = std::vector<at::Tensor>;
using Function = std::function<Tensors(const Tensors&)>;
using Names = std::vector<std::string>;
// Each pair names a dynamic size: dimension `second` of tensor number `first` has a symbol.
using DynamicSizes = std::vector<std::pair<std::size_t, std::int64_t>>;

inline const std::string kLinear = "torch.ops.higher_order.invoke_subgraph";

// The parameters and buffers of a module, as trace() takes them.
std::vector<NamedTensor> named_tensors(torch::nn::Module& module);

// Captures a call of `function` with `inputs`, which get the names "x0", "x1", ...
CapturedGraph trace(const Function& function, const Tensors& inputs, const DynamicSizes& dynamic = {},
                    std::vector<NamedTensor> named = {});

template <class Module>
Function forward_of(Module& module) {
  return [&module](const Tensors& x) { return Tensors{module->forward(x[0])}; };
}
template <class Module>
CapturedGraph trace_module(Module& module, const at::Tensor& input, const DynamicSizes& dynamic = {}) {
  return trace(forward_of(module), {input}, dynamic, named_tensors(*module));
}

// The arguments for an interpreter of the captured graph, for a call with these inputs.
std::vector<c10::IValue> arguments_of(const CapturedGraph& captured, const Tensors& inputs);
Tensors replay(const CapturedGraph& captured, const Tensors& inputs);

// The gradients of the sum of all results with respect to `of`; an undefined tensor for a tensor that has no gradient.
// Returns an empty list if no result requires a gradient.
Tensors gradients(const Tensors& results, const Tensors& of);

// Runs `function` and the graph on the same inputs and the same random numbers. Expects the same values, dtypes,
// strides and requires_grad of the results. Expects the same of the gradients of `of`, and of the gradients of inputs
// that require one. Also expects that the graph's metadata describe the results.
void expect_same(const CapturedGraph& captured, const Function& function, const Tensors& inputs,
                 const Tensors& of = {});

// The targets of the calls, in order. A target of ATen appears without its prefix `torch.ops.aten.`.
Names targets(const CapturedGraph& captured);
Names placeholders(const CapturedGraph& captured);

}  // namespace rehearse::capture::test
