// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace torch::nn {
class Module;
}

namespace rehearse::parallel {

// What the reducer is to reduce: each parameter that requires a gradient once, in order of modules.
struct ReducedParameters {
  std::vector<at::Tensor> tensors;
  std::vector<std::string> names;   // "encoder.0.weight"; the last one of a parameter that has several
  std::vector<bool> expect_sparse;  // gradients of sparse embeddings
};

// Throws c10::Error when no parameter requires a gradient, c10::ValueError when parameters are on devices of
// several types (_build_params_for_reducer and the checks of __init__ in torch/nn/parallel/distributed.py).
ReducedParameters reduced_parameters(const torch::nn::Module& module);

// All parameters (frozen ones too), each once, in order of modules.
std::vector<at::Tensor> module_parameters(const torch::nn::Module& module);

// The buffers as they are now, each once: a module may have put others in place of those that it had.
std::vector<at::Tensor> module_buffers(const torch::nn::Module& module);

}  // namespace rehearse::parallel
