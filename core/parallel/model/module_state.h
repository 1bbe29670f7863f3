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

// Parameters of a model, each once. reduced_parameters() returns those that require a gradient, in order of modules.
struct ReducedParameters {
  std::vector<at::Tensor> tensors;
  std::vector<std::string> names;   // "encoder.0.weight"; of several names, DDP takes the last one, FSDP the first
  std::vector<bool> expect_sparse;  // gradients of sparse embeddings
};

// Names of parameters and buffers that DDP ignores. A tensor with several names is ignored only if all of them are in
// the set.
using IgnoredNames = std::unordered_set<std::string>;

// Throws c10::ValueError for a name that is neither a parameter's nor a buffer's.
IgnoredNames ignored_names(const torch::nn::Module& module, const std::vector<std::string>& names);

// Throws c10::Error if no parameter requires a gradient, and c10::ValueError if parameters are on devices of several
// types (_build_params_for_reducer and the checks of __init__ in torch/nn/parallel/distributed.py).
ReducedParameters reduced_parameters(const torch::nn::Module& module, const IgnoredNames& ignored);

// All parameters (frozen ones too), each once, in order of modules.
std::vector<at::Tensor> module_parameters(const torch::nn::Module& module, const IgnoredNames& ignored = {});

// The current buffers, each once. Call it again when needed, because a module may replace its buffers.
std::vector<at::Tensor> module_buffers(const torch::nn::Module& module, const IgnoredNames& ignored);

// Copies the values of `root` to all ranks of the group; coalesced up to 250 MiB. Blocks.
void broadcast_state(const c10::intrusive_ptr<c10d::ProcessGroup>& group, std::vector<at::Tensor> tensors, int root);

}  // namespace rehearse::parallel
