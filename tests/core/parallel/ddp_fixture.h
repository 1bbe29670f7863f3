// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>

#include <rehearse/parallel/distributed_data_parallel.h>
#include <rehearse/sim/world.h>

namespace rehearse_test {

// Closed-form values that depend on `salt`: small multiples of 1/16, so their sums are exact.
at::Tensor values(at::IntArrayRef sizes, int salt, at::ScalarType dtype = at::kDouble);

// Fills every parameter. Modules of the same structure get equal values for the same salt.
void fill(torch::nn::Module& module, int salt = 0);

torch::nn::Linear double_linear(int inputs, int outputs);

struct MlpImpl : torch::nn::Module {
  explicit MlpImpl(int inputs = 6, int hidden = 16, int outputs = 3, at::ScalarType dtype = at::kDouble);
  at::Tensor forward(const at::Tensor& x);

  torch::nn::Linear first, second, third;
};
TORCH_MODULE(Mlp);

// The rows on which `rank` trains in `step`. The whole batch has the rows of all ranks, one rank after the other.
at::Tensor batch_of(int rank, int step, int rows = 4, int columns = 6);
at::Tensor whole_batch(int ranks, int step, int rows = 4, int columns = 6);

// p -= rate * gradient, once for each parameter tensor that has a gradient.
void descend(const std::vector<at::Tensor>& parameters, double rate);

std::vector<at::Tensor> copies(const std::vector<at::Tensor>& tensors);
std::vector<at::Tensor> gradient_copies(const std::vector<at::Tensor>& parameters);  // undefined ones stay undefined

// Compares dtypes, sizes and, within `tolerance`, values. Two undefined tensors count as equal. BitEqual() of
// "bit_equal.h" compares bits.
::testing::AssertionResult close(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b,
                                 double tolerance = 1e-12);

// Runs the body on all ranks. Adds a test failure with the report if the verdict is not OK.
void run_ranks(const rehearse::WorldOptions& options, const rehearse::World::Body& body);

// Runs the body on 1, 2, 3, 5 and 8 ranks, with three seeds each.
void for_ranks_and_seeds(const rehearse::World::Body& body);

// Returns the text of the Error that `body` throws. Adds a test failure if `body` throws nothing.
template <class Error, class Body>
std::string error_of(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

// The report as text for failure messages: verdict, headline, and a line per rank.
std::string brief(const rehearse::Report& report);

}  // namespace rehearse_test
