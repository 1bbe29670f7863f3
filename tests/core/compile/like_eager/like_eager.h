// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <ATen/ATen.h>

namespace rehearse_test {

using Tensors = std::vector<at::Tensor>;

// A function that tests run both compiled and in eager mode.
struct Program {
  const char* name;
  Tensors (*run)(const Tensors& given);
};

// The effects of a call.
struct Observed {
  std::vector<at::Tensor> results;    // expect_same() also compares their requires_grad
  std::vector<at::Tensor> gradients;  // of the leaves, in order; undefined if there is none
  std::vector<at::Tensor> arguments;  // their contents afterwards
};

// Calls `forward` on copies of the arguments, runs the backward from all results that require a gradient, and collects
// and resets the gradients of `leaves`. Arguments that require a gradient count as leaves, too. The random generator
// starts in the same state each time.
template <class Forward>
Observed observe(Forward&& forward, const std::vector<at::Tensor>& arguments, std::vector<at::Tensor> leaves = {});

// Adds a test failure for each tensor whose values, dtype, sizes or requires_grad differ. NaN equals NaN. An undefined
// gradient differs from a gradient of zeros.
void expect_same(const Observed& found, const Observed& expected, const std::string& what);

std::vector<at::Tensor> copies_of(const std::vector<at::Tensor>& arguments);
Observed differentiate(std::vector<at::Tensor> results, std::vector<at::Tensor> arguments,
                       std::vector<at::Tensor> leaves);

template <class Forward>
Observed observe(Forward&& forward, const std::vector<at::Tensor>& arguments, std::vector<at::Tensor> leaves) {
  std::vector<at::Tensor> mine = copies_of(arguments);
  for (const at::Tensor& argument : mine) {
    if (argument.requires_grad()) leaves.push_back(argument);
  }
  at::manual_seed(3);
  std::vector<at::Tensor> results = forward(mine);
  return differentiate(std::move(results), std::move(mine), std::move(leaves));
}

}  // namespace rehearse_test
