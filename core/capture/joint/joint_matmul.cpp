// SPDX-License-Identifier: BSD-3-Clause
#include "capture/joint/joint_matmul.h"

#include <algorithm>
#include <vector>

#include <ATen/ExpandUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/_unsafe_view.h>
#include <ATen/ops/matmul_native.h>
#include <torch/library.h>

#include "capture/fake/call/result_layout.h"
#include "capture/fake/never_destroyed.h"

namespace rehearse::capture {
namespace {

using SymInts = std::vector<c10::SymInt>;

// A key above autograd that only Python's tracing uses. In LibTorch, operators fall through it.
constexpr c10::DispatchKey kKey = c10::DispatchKey::PreDispatch;

bool has_symbolic_sizes(const at::Tensor& tensor) { return tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides(); }

// Like should_fold() in at::native: true if `larger` can become a matrix without a copy, or if the copy pays off in the
// backward. `larger` has at least three dimensions, `smaller` has one or two.
bool folds(const at::Tensor& larger, const at::Tensor& smaller, bool larger_is_second) {
  if (smaller.requires_grad()) return true;
  if (larger_is_second && smaller.dim() == 2) return false;
  const at::Tensor matrix = larger_is_second ? larger.mT() : larger;
  const auto sizes = matrix.sym_sizes(), strides = matrix.sym_strides();
  for (std::size_t i = 0; i + 2 < sizes.size(); ++i) {
    if (strides[i] != strides[i + 1] * sizes[i + 1]) return false;
  }
  return true;
}

at::Tensor folded(const at::Tensor& left, const at::Tensor& right) {
  const bool transpose = right.dim() > left.dim();
  const at::Tensor larger = transpose ? right.mT() : left;
  const at::Tensor smaller = !transpose ? right : left.dim() == 2 ? left.t() : left;
  SymInts shape(larger.sym_sizes().begin(), larger.sym_sizes().end() - 1);
  const c10::SymInt rows = product(shape);
  const at::Tensor matrix = larger.reshape_symint({rows, larger.sym_sizes().back()});
  if (smaller.dim() == 1) return at::_unsafe_view_symint(matrix.mv(smaller), shape);
  shape.push_back(smaller.sym_size(1));
  const at::Tensor result = at::_unsafe_view_symint(matrix.mm(smaller), shape);
  return transpose ? result.mT().contiguous() : result;
}

// Computes the product as batches of matrices: expands both factors to all batch dimensions, and flattens these
// dimensions into one.
at::Tensor batched(const at::Tensor& left, const at::Tensor& right) {
  const auto batch_of = [](const at::Tensor& tensor) {
    const auto sizes = tensor.sym_sizes();
    return SymInts(sizes.begin(), sizes.end() - std::min<std::ptrdiff_t>(tensor.dim(), 2));
  };
  const SymInts left_batch = batch_of(left), right_batch = batch_of(right);
  const auto shared = at::infer_size_symint(left_batch, right_batch);
  SymInts shape(shared.begin(), shared.end());
  const c10::SymInt batches = product(shape);
  const c10::SymInt n = left.dim() > 1 ? left.sym_size(-2) : c10::SymInt(1);
  const c10::SymInt m1 = left.sym_size(-1);
  const bool is_vector = right.dim() == 1;
  const c10::SymInt m2 = is_vector ? right.sym_size(0) : right.sym_size(-2);
  const auto joined = [&](const SymInts& tail) {
    SymInts sizes = shape;
    sizes.insert(sizes.end(), tail.begin(), tail.end());
    return sizes;
  };
  const at::Tensor a = left.expand_symint(joined({n, m1})).reshape_symint({batches, n, m1});
  at::Tensor b;
  if (is_vector) {
    b = right.expand_symint(joined({m2})).reshape_symint({batches, m2}).unsqueeze(2);
  } else {
    const c10::SymInt p = right.sym_size(-1);
    b = right.expand_symint(joined({m2, p})).reshape_symint({batches, m2, p});
  }
  if (left.dim() > 1) shape.push_back(n);
  if (!is_vector) shape.push_back(right.sym_size(-1));
  const at::Tensor result = a.bmm(b);
  return at::_unsafe_view_symint(is_vector ? result.squeeze(-1) : result, shape);
}

at::Tensor symbolic_matmul(const at::Tensor& left, const at::Tensor& right) {
  const bool is_plain = left.dim() <= 2 && right.dim() <= 2;
  if (is_plain || left.dim() == 0 || right.dim() == 0 || (!has_symbolic_sizes(left) && !has_symbolic_sizes(right))) {
    return at::native::matmul(left, right);
  }
  const bool second_is_larger = right.dim() > left.dim();
  const at::Tensor& larger = second_is_larger ? right : left;
  const at::Tensor& smaller = second_is_larger ? left : right;
  if (larger.dim() >= 3 && smaller.dim() <= 2 && folds(larger, smaller, second_is_larger)) return folded(left, right);
  if (left.dim() == 3 && right.dim() == 3 && left.sym_size(0) != right.sym_size(0)) {
    if (left.sym_size(0) == 1 && left.requires_grad()) return symbolic_matmul(left.squeeze(0), right);
    if (right.sym_size(0) == 1 && right.requires_grad()) return symbolic_matmul(left, right.squeeze(0));
  }
  return batched(left, right);
}

void register_kernel() {
  static const NeverDestroyed<torch::Library> matmul([] {
    torch::Library made(torch::Library::IMPL, "aten", kKey, __FILE__, __LINE__);
    made.impl("matmul", TORCH_FN(symbolic_matmul));
    return made;
  });
}

c10::DispatchKey registered_key() {
  register_kernel();
  return kKey;
}

}  // namespace

SymbolicMatmul::SymbolicMatmul() : include_(registered_key()) {}

}  // namespace rehearse::capture
