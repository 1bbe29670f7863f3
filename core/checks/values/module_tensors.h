// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include <ATen/core/Tensor.h>

namespace torch::nn {
class Module;
}

namespace rehearse::checks {

// Reads the tensors of a torch::nn::Module. LibTorch's headers of modules take two seconds to compile, so include this
// header instead.
struct ModuleTensor {
  std::string name;  // "encoder.0.weight"
  at::Tensor tensor;
  bool is_buffer = false;
  bool sparse_gradient = false;  // belongs to an embedding whose gradients are sparse
};

// All defined tensors, in order of modules. A tensor that is registered twice appears twice, under both names.
std::vector<ModuleTensor> parameters_of(const torch::nn::Module& module);
std::vector<ModuleTensor> buffers_of(const torch::nn::Module& module);

// Keeps each tensor once: under the first of its names that is not in `left_out`. Drops a tensor if `left_out` has all
// of its names.
std::vector<ModuleTensor> each_once(std::vector<ModuleTensor> tensors, const std::unordered_set<std::string>& left_out);

// Returns Module::name().
const std::string& name_of(const torch::nn::Module& module);

}  // namespace rehearse::checks
