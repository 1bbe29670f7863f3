// SPDX-License-Identifier: BSD-3-Clause
#include "core/parallel/ddp_fixture.h"

#include <set>

namespace rehearse_test {

at::Tensor values(at::IntArrayRef sizes, int salt, at::ScalarType dtype) {
  const auto count = c10::multiply_integers(sizes);
  const auto place = at::arange(count, at::kLong) + 31 * salt;
  return (((place * 7919 + salt).remainder(17) - 8).to(dtype) / 16).view(sizes);
}

void fill(torch::nn::Module& module, int salt) {
  const at::NoGradGuard no_grad;
  for (auto& parameter : module.parameters()) {
    parameter.copy_(values(parameter.sizes(), salt++, parameter.scalar_type()));
  }
}

torch::nn::Linear double_linear(int inputs, int outputs) {
  torch::nn::Linear linear(inputs, outputs);
  linear->to(at::kDouble);
  return linear;
}

MlpImpl::MlpImpl(int inputs, int hidden, int outputs, at::ScalarType dtype)
    : first(register_module("first", torch::nn::Linear(inputs, hidden))),
      second(register_module("second", torch::nn::Linear(hidden, hidden))),
      third(register_module("third", torch::nn::Linear(hidden, outputs))) {
  to(dtype);
}

at::Tensor MlpImpl::forward(const at::Tensor& x) { return third(second(first(x).relu()).relu()); }

at::Tensor batch_of(int rank, int step, int rows, int columns) {
  return values({rows, columns}, 100 * step + rank + 1);
}

at::Tensor whole_batch(int ranks, int step, int rows, int columns) {
  std::vector<at::Tensor> parts;
  for (int rank = 0; rank < ranks; ++rank) parts.push_back(batch_of(rank, step, rows, columns));
  return at::cat(parts);
}

void descend(const std::vector<at::Tensor>& parameters, double rate) {
  const at::NoGradGuard no_grad;
  std::set<const at::TensorImpl*> done;
  for (auto parameter : parameters) {
    if (!done.insert(parameter.unsafeGetTensorImpl()).second || !parameter.grad().defined()) continue;
    const auto& gradient = parameter.grad();
    parameter.sub_(gradient.is_sparse() ? gradient.to_dense() : gradient, rate);
  }
}

std::vector<at::Tensor> copies(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> result;
  for (const auto& tensor : tensors) result.push_back(tensor.defined() ? tensor.detach().clone() : at::Tensor());
  return result;
}

std::vector<at::Tensor> gradient_copies(const std::vector<at::Tensor>& parameters) {
  std::vector<at::Tensor> gradients;
  for (const auto& parameter : parameters) gradients.push_back(parameter.grad());
  return copies(gradients);
}

::testing::AssertionResult close(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b, double tolerance) {
  if (a.size() != b.size()) return ::testing::AssertionFailure() << a.size() << " tensors and " << b.size();
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!a[i].defined() && !b[i].defined()) continue;
    if (!a[i].defined() || !b[i].defined()) return ::testing::AssertionFailure() << "tensor " << i << " undefined";
    if (a[i].sizes() == b[i].sizes() && a[i].scalar_type() == b[i].scalar_type() &&
        at::allclose(a[i], b[i], /*rtol=*/tolerance, /*atol=*/tolerance)) {
      continue;
    }
    return ::testing::AssertionFailure() << "tensor " << i << " differs:\n" << a[i] << "\nand\n" << b[i];
  }
  return ::testing::AssertionSuccess();
}

void run_ranks(const rehearse::WorldOptions& options, const rehearse::World::Body& body) {
  rehearse::World world(options);
  const auto report = world.run(body);
  EXPECT_EQ(report.verdict, rehearse::Verdict::ok) << brief(report);
}

void for_ranks_and_seeds(const rehearse::World::Body& body) {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    for (const std::uint64_t seed : {1, 2, 3}) {
      SCOPED_TRACE(testing::Message() << ranks << " ranks, seed " << seed);
      run_ranks({.ranks = ranks, .seed = seed}, body);
    }
  }
}

std::string brief(const rehearse::Report& report) {
  std::string text = std::string(to_string(report.verdict)) + ": " + report.headline;
  for (const auto& line : report.rank_lines) {
    text += "\n  rank " + std::to_string(line.rank) + " " + std::string(to_string(line.state)) + " " + line.doing;
  }
  return text;
}

}  // namespace rehearse_test
