// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/operators/matmul_of_fakes.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <ATen/ExpandUtils.h>

#include <rehearse_internal/capture/fake_mode.h>
#include <rehearse_internal/capture/fake_tensor.h>

namespace rehearse::capture {
namespace {

using Sizes = std::vector<c10::SymInt>;

Sizes batch_of(const at::Tensor& tensor) {
  const auto sizes = tensor.sym_sizes();
  return tensor.dim() <= 2 ? Sizes{} : Sizes(sizes.begin(), sizes.end() - 2);
}

// As in numpy's matmul, a vector is a row on the left and a column on the right, and the result does not have the
// vector's dimension.
Sizes matmul_sizes(const at::Tensor& left, const at::Tensor& right) {
  TORCH_CHECK(left.dim() > 0 && right.dim() > 0, "both arguments to matmul need to be at least 1D, but they are ",
              left.dim(), "D and ", right.dim(), "D");
  const c10::SymInt inner = left.sym_size(-1);
  const c10::SymInt of_right = right.sym_size(right.dim() == 1 ? 0 : -2);
  TORCH_CHECK(inner == of_right, "matmul: mat1 and mat2 shapes cannot be multiplied: the inner sizes are ", inner,
              " and ", of_right);
  const auto batch = at::infer_size_symint(batch_of(left), batch_of(right));
  Sizes sizes(batch.begin(), batch.end());
  if (left.dim() > 1) sizes.push_back(left.sym_size(-2));
  if (right.dim() > 1) sizes.push_back(right.sym_size(-1));
  return sizes;
}

// LibTorch multiplies a matrix that requires grad by a batch of matrices as one matrix product, and transposes the
// result (should_fold() in at::native). If the transposed result counts as contiguous, because it has at most one row
// or column or no elements, it keeps its strides.
Sizes matmul_strides(const at::Tensor& left, const at::Tensor& right, const Sizes& sizes) {
  const auto is = [](const c10::SymInt& size, std::int64_t number) { return size.maybe_as_int() == number; };
  if (left.dim() == 2 && right.dim() > 2 && left.requires_grad()) {
    const std::size_t row = sizes.size() - 2, column = sizes.size() - 1;
    const bool is_empty = std::any_of(sizes.begin(), sizes.end(), [&](const auto& size) { return is(size, 0); });
    if (is(sizes[row], 1) || is(sizes[column], 1) || is_empty) {
      Sizes transposed = sizes;
      std::swap(transposed[row], transposed[column]);
      Sizes strides = contiguous_strides(transposed);
      std::swap(strides[row], strides[column]);
      return strides;
    }
  }
  return contiguous_strides(sizes);
}

}  // namespace

void matmul_of_fakes(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  FakeMode* const mode = FakeMode::current();
  if (mode->listener() != nullptr) {
    op.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, c10::DispatchKey::Fake), stack);
    return;
  }
  const at::Tensor right = mode->fake_of(torch::jit::pop(*stack).toTensor());
  const at::Tensor left = mode->fake_of(torch::jit::pop(*stack).toTensor());
  TORCH_CHECK(left.scalar_type() == right.scalar_type(),
              "expected m1 and m2 to have the same dtype, but got: ", left.scalar_type(), " != ", right.scalar_type());
  TensorSpec spec;
  spec.sizes = matmul_sizes(left, right);
  spec.strides = matmul_strides(left, right, spec.sizes);
  spec.dtype = left.scalar_type();
  spec.device = left.device();
  torch::jit::push(*stack, make_fake(spec));
}

}  // namespace rehearse::capture
