// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <ATen/ATen.h>

namespace rehearse_test {

using Tensors = std::vector<at::Tensor>;

// What is run compiled and as it is.
struct Program {
  const char* name;
  Tensors (*run)(const Tensors& given);
};

// What a call has left behind.
struct Observed {
  std::vector<at::Tensor> results;    // and whether they require grad
  std::vector<at::Tensor> gradients;  // of the leaves, in order; undefined where there is none
  std::vector<at::Tensor> arguments;  // what is in them afterwards
};

// Calls `forward` on copies of the arguments, goes backward from the results that require grad, and takes the gradients
// of `leaves` away. Arguments that require grad are leaves too. The random generator begins at the same place each
// time.
template <class Forward>
Observed observe(Forward&& forward, const std::vector<at::Tensor>& arguments, std::vector<at::Tensor> leaves = {});

// A test failure for each bit in which they differ; an undefined gradient is not one of zeros.
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
