// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <sstream>
#include <vector>

#include <ATen/ATen.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/optimizer.h>

namespace rehearse::compiler::kept_tensors {

// State that a function keeps from one call to the next.
struct State {
  at::Tensor cache, other;
  std::vector<at::Tensor> list;
  std::map<std::int64_t, at::Tensor> by_size;
  int calls = 0;
  torch::nn::Linear layer = [] {
    at::manual_seed(7);
    return torch::nn::Linear(4, 4);
  }();
  std::unique_ptr<torch::optim::Optimizer> optimizer;

  std::vector<at::Tensor> tensors() const {
    std::vector<at::Tensor> all = {cache, other};
    all.insert(all.end(), list.begin(), list.end());
    for (const auto& [size, tensor] : by_size) all.push_back(tensor);
    for (const at::Tensor& parameter : layer->parameters()) all.push_back(parameter);
    return all;
  }
};

// Reads the memory of a tensor.
inline void write_down(const at::Tensor& tensor) {
  std::ostringstream out;
  out << tensor;
}

// Reads the memory of a tensor, and goes on if that is an error.
inline void try_to_write_down(const at::Tensor& tensor) {
  try {
    write_down(tensor);
  } catch (const std::exception&) {
  }
}

}  // namespace rehearse::compiler::kept_tensors
