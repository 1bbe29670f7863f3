// SPDX-License-Identifier: BSD-3-Clause
#include "core/compile/like_eager/like_eager.h"

#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>

#include "bit_equal.h"

namespace rehearse_test {
namespace {

void expect_same_tensors(const std::vector<at::Tensor>& found, const std::vector<at::Tensor>& expected,
                         const std::string& what) {
  ASSERT_THAT(found, rehearse::test::BitEqual(expected)) << what;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!found[i].defined()) continue;
    EXPECT_EQ(found[i].requires_grad(), expected[i].requires_grad()) << what << ' ' << i;
  }
}

}  // namespace

std::vector<at::Tensor> copies_of(const std::vector<at::Tensor>& arguments) {
  std::vector<at::Tensor> copies;
  for (const at::Tensor& argument : arguments) {
    copies.push_back(argument.detach().clone().requires_grad_(argument.requires_grad()));
  }
  return copies;
}

Observed differentiate(std::vector<at::Tensor> results, std::vector<at::Tensor> arguments,
                       std::vector<at::Tensor> leaves) {
  Observed seen;
  std::vector<at::Tensor> roots, tangents;
  for (const at::Tensor& result : results) {
    if (!result.defined() || !result.requires_grad()) continue;
    if (!torch::autograd::impl::gradient_edge(result).function) continue;  // a view that was made without grad mode
    roots.push_back(result);
    tangents.push_back(at::arange(1, result.numel() + 1, result.options().requires_grad(false)).view(result.sizes()));
  }
  if (!roots.empty()) torch::autograd::backward(roots, tangents);
  for (at::Tensor& leaf : leaves) {
    seen.gradients.push_back(leaf.is_leaf() && leaf.grad().defined() ? leaf.grad().clone() : at::Tensor());
    if (leaf.is_leaf()) leaf.mutable_grad().reset();
  }
  seen.results = std::move(results);
  seen.arguments = std::move(arguments);
  return seen;
}

void expect_same(const Observed& found, const Observed& expected, const std::string& what) {
  expect_same_tensors(found.results, expected.results, what + ": result");
  expect_same_tensors(found.gradients, expected.gradients, what + ": gradient");
  expect_same_tensors(found.arguments, expected.arguments, what + ": argument");
}

}  // namespace rehearse_test
