// SPDX-License-Identifier: BSD-3-Clause
#include "core/compile/like_eager/like_eager.h"

#include <utility>

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>

namespace rehearse_test {
namespace {

// Describes how the tensors differ; empty if they do not.
std::string difference(const at::Tensor& left, const at::Tensor& right) {
  if (left.scalar_type() != right.scalar_type() || left.sizes() != right.sizes()) return "another dtype or other sizes";
  const at::Tensor a = left.detach(), b = right.detach();
  if (at::equal(a, b) || at::allclose(a, b, 0, 0, /*equal_nan=*/true)) return "";
  return "differ by up to " + std::to_string((a - b).abs().max().item<double>());
}

void expect_same_tensors(const std::vector<at::Tensor>& found, const std::vector<at::Tensor>& expected,
                         const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::string which = what + " " + std::to_string(i);
    ASSERT_EQ(found[i].defined(), expected[i].defined()) << which;
    if (!found[i].defined()) continue;
    EXPECT_EQ(found[i].requires_grad(), expected[i].requires_grad()) << which;
    EXPECT_EQ(difference(found[i], expected[i]), "") << which;
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
