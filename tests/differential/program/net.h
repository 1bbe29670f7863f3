// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <rehearse/job/group.h>
#include <rehearse/parallel/device_mesh.h>

#include "differential/program/operation.h"
#include "differential/program/program.h"

namespace rehearse_test::differential {

// The features of every layer, and the last dimension of most arguments.
inline constexpr std::int64_t kWidth = 4;

const std::vector<std::string>& layer_kinds();
// Whether layers of a kind compute in single precision.
bool is_single_layer(const std::string& kind);

// A module whose forward() interprets a program. It owns the program's layers and the tensors of free_tensors().
struct Net : torch::nn::Module {
  explicit Net(const Program& program);

  Tensors forward(const Tensors& arguments, std::int64_t count, std::int64_t& steps);
  // Calls a layer by its index in Program::layers.
  at::Tensor call(std::size_t layer, const at::Tensor& x);
  // The module's tensors that statements may use. Program numbers them in this order, after the arguments.
  Tensors free_tensors() const { return {vector, matrix, scalar, buffer, counter}; }

  Program program;
  at::Tensor vector, matrix, scalar, buffer, counter;
  at::Tensor cache, average;                 // not registered; undefined at first
  bool gave_outside = false;                 // a checkpoint has returned a tensor from outside, or a view of one
  rehearse::Group group;                     // empty without ranks
  std::optional<rehearse::DeviceMesh> mesh;  // of sizes [1, 2], with the group's ranks; none without ranks

 private:
  std::vector<std::function<at::Tensor(const at::Tensor&)>> layers_;
};

const std::vector<std::string>& free_names();

}  // namespace rehearse_test::differential
