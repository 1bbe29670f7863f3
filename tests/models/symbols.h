// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/modules/linear.h>

#include <rehearse/capture/forward_capture.h>

// Models of PyTorch's DDPOptimizer tests. In all of them but RandomProduct, symbols cross a cut.
namespace rehearse::test {

// test_symbol_splitting: the tensor that passes from one product to the next has twice as many rows as the input. Each
// weight is 1 MiB.
struct SymbolSplittingImpl : torch::nn::Module {
  SymbolSplittingImpl()
      : weight1(register_parameter("weight1", at::randn({512, 512}))),
        weight2(register_parameter("weight2", at::randn({512, 512}))) {}

  // x: [batch, 512]; returns [2 * batch, 512].
  at::Tensor forward(const at::Tensor& x) {
    const auto twice = at::cat({x, x});
    const auto y = at::matmul(twice, weight1);
    return twice + at::matmul(y, weight2);
  }

  at::Tensor weight1, weight2;
};
TORCH_MODULE(SymbolSplitting);

// test_unbacked_symbol_splitting_direct: the first piece makes a number from data, and the second multiplies by it. In
// this model and the next two, y has two whole numbers, and the model uses the first one.
struct DirectSplittingImpl : torch::nn::Module {
  DirectSplittingImpl()
      : weight1(register_parameter("weight1", at::randn({512, 512}))),
        weight2(register_parameter("weight2", at::randn({512, 512}))) {}

  // x: [batch, 512]; returns [2 * batch, 512].
  at::Tensor forward(const at::Tensor& x, const at::Tensor& y) {
    const auto count = sym_tolist(y)[0];
    const auto twice = at::cat({x, x});
    const auto first = at::matmul(twice, weight1);
    return (twice + at::matmul(first, weight2)) * c10::Scalar(count);
  }

  at::Tensor weight1, weight2;
};
TORCH_MODULE(DirectSplitting);

// test_unbacked_symbol_splitting_indirect: a tensor whose number of items comes from data crosses the cut.
struct IndirectSplittingImpl : torch::nn::Module {
  IndirectSplittingImpl()
      : weight1(register_parameter("weight1", at::randn({512, 512}))),
        weight2(register_parameter("weight2", at::randn({512, 512}))) {}

  at::Tensor forward(const at::Tensor& x, const at::Tensor& y) {
    const auto ones = at::ones_symint({sym_tolist(y)[0]});
    const auto twice = at::cat({x, x});
    const auto first = at::matmul(twice, weight1);
    return (twice + at::matmul(first, weight2)) * ones.sum();
  }

  at::Tensor weight1, weight2;
};
TORCH_MODULE(IndirectSplitting);

// test_unbacked_symbol_splitting_torture_multi: the first piece makes a number from data. In the second piece, a tensor
// has this number as its size. The third piece uses that tensor's sum. The test cuts at 1 MB.
struct TortureSplittingImpl : torch::nn::Module {
  TortureSplittingImpl()
      : weight1(register_parameter("weight1", at::randn({512, 512}))),
        weight2(register_parameter("weight2", at::randn({512, 512}))),
        weight3(register_parameter("weight3", at::randn({512, 512}))) {}

  at::Tensor forward(const at::Tensor& x, const at::Tensor& y) {
    const auto count = sym_tolist(y)[0];
    const auto twice = at::cat({x, x});
    const auto first = at::matmul(twice, weight1);
    const auto second = at::matmul(first, weight2);
    const auto ones = at::ones_symint({count});
    return (twice + at::matmul(second, weight3)) * ones.sum();
  }

  at::Tensor weight1, weight2, weight3;
};
TORCH_MODULE(TortureSplitting);

// test_unbacked_symbol_splitting_no_binding: the indices of nonzero items cross the cut, and no node returns their
// number.
struct NonzeroSplittingImpl : torch::nn::Module {
  NonzeroSplittingImpl()
      : weight1(register_parameter("weight1", at::randn({512, 512}))),
        weight2(register_parameter("weight2", at::randn({512, 512}))) {}

  // x: [batch, 512]; y: numbers in one dimension; returns [2 * batch, 512].
  at::Tensor forward(const at::Tensor& x, const at::Tensor& y) {
    const auto places = y.nonzero();
    const auto twice = at::cat({x, x});
    const auto first = at::matmul(twice, weight1);
    return (twice + at::matmul(first, weight2)) * (places + 1).sum();
  }

  at::Tensor weight1, weight2;
};
TORCH_MODULE(NonzeroSplitting);

// test_ddp_optimizer_inductor_strides_dont_specialize: the tensor that crosses the cut has symbolic strides.
struct TwoLinearsImpl : torch::nn::Module {
  TwoLinearsImpl()
      : fc_0(register_module("fc_0", torch::nn::Linear(768, 768))),
        fc_1(register_module("fc_1", torch::nn::Linear(768, 768))) {}

  // x: [batch, length, 768]; returns the same sizes.
  at::Tensor forward(const at::Tensor& x) { return fc_1(fc_0(x)); }

  torch::nn::Linear fc_0, fc_1;
};
TORCH_MODULE(TwoLinears);

// test_issue90375: no parameters and no inputs.
struct RandomProductImpl : torch::nn::Module {
  at::Tensor forward() { return at::randn(3) * at::randn(3); }
};
TORCH_MODULE(RandomProduct);

}  // namespace rehearse::test
