// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

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

// Names of parameters and buffers that DDP leaves alone. A tensor with several names is left alone when all
// of them are in the set.
using IgnoredNames = std::unordered_set<std::string>;

// Throws c10::ValueError for a name that no parameter and no buffer has.
IgnoredNames ignored_names(const torch::nn::Module& module, const std::vector<std::string>& names);

// Throws c10::Error when no parameter requires a gradient, c10::ValueError when parameters are on devices of
// several types (_build_params_for_reducer and the checks of __init__ in torch/nn/parallel/distributed.py).
ReducedParameters reduced_parameters(const torch::nn::Module& module, const IgnoredNames& ignored);

// All parameters (frozen ones too), each once, in order of modules.
std::vector<at::Tensor> module_parameters(const torch::nn::Module& module, const IgnoredNames& ignored = {});

// The buffers as they are now, each once: a module may have put others in place of those that it had.
std::vector<at::Tensor> module_buffers(const torch::nn::Module& module, const IgnoredNames& ignored);

// The values of `root`, on all ranks of the group; coalesced up to 250 MiB. Blocks.
void broadcast_state(const c10::intrusive_ptr<c10d::ProcessGroup>& group, std::vector<at::Tensor> tensors, int root);

}  // namespace rehearse::parallel
