// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/operators/matmul_of_fakes.h"

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

// As in numpy's matmul, a vector is a row on the left and a column on the right, and the result does not have its
// dimension.
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
  spec.strides = contiguous_strides(spec.sizes);
  spec.dtype = left.scalar_type();
  spec.device = left.device();
  torch::jit::push(*stack, make_fake(spec));
}

}  // namespace rehearse::capture
