// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/ExpandUtils.h>
#include <ATen/core/List.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <rehearse_internal/capture/fake_mode.h>
#include <rehearse_internal/capture/fake_tensor.h>

#include "capture/fake/fake_impl.h"
#include "capture/fake/never_destroyed.h"
#include "capture/trace/hooks/process_hooks.h"
#include "capture/trace/tracer.h"

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

// A boxed kernel for aten::matmul below autograd, for when a FakeMode is on. LibTorch's own kernel decomposes matmul
// and asks for plain sizes, which would fix the symbols of every matmul, and of every linear layer whose input has more
// than two dimensions. This kernel computes the sizes of the result from the sizes of the arguments. If the fake mode
// has a listener, the kernel decomposes matmul instead, because the listener needs to see the operators.
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

// The keys of autograd and of captures, which must not apply outside the capture's own thread.
constexpr c10::DispatchKeySet kNotInOtherThreads =
    c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::DispatchKeySet(c10::DispatchKey::DeferredInit);
constexpr c10::DispatchKeySet kBelowTracer(c10::DispatchKeySet::FULL_AFTER, c10::DispatchKey::DeferredInit);

// Replaces fakes by the real tensors for which they stand in the rest of a call. Returns nothing if there is no real
// tensor, or if the fake has another history.
std::optional<c10::IValue> real_value(const c10::IValue& value) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    const FakeImpl* const fake = tensor.defined() ? fake_impl(tensor) : nullptr;
    if (!fake) return value;
    if (!fake->real().defined() || fake->real().requires_grad() != tensor.requires_grad()) return std::nullopt;
    return fake->real();
  }
  if (!value.isList()) return value;
  c10::impl::GenericList reals(value.toList().elementType());
  for (const c10::IValue& item : value.toListRef()) {
    const auto real = real_value(item);
    if (!real) return std::nullopt;
    reals.push_back(*real);
  }
  return reals;
}

// In the rest of a call, another thread may read the fakes that are left. A write would not reach their histories.
bool call_on_real(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  if (op.schema().is_mutable()) return false;
  torch::jit::Stack reals;
  for (const c10::IValue& argument : torch::jit::last(stack, op.schema().arguments().size())) {
    const auto real = real_value(argument);
    if (!real) return false;
    reals.push_back(*real);
  }
  torch::jit::drop(stack, reals.size());
  op.callBoxed(reals);
  for (c10::IValue& result : reals) stack.push_back(std::move(result));
  return true;
}

void trace_fallback(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  if (Tracer* const tracer = Tracer::current()) return tracer->call(op, *stack);
  if (FakeMode::current()) return op.redispatchBoxed(keys & kBelowTracer, stack);
  if (call_on_real(op, *stack)) return;
  const c10::impl::ExcludeDispatchKeyGuard below(kNotInOtherThreads);
  call_without_mode(op, keys, *stack);
}

// max_pool1d() reads the memory of an input that needs no gradient, so a capture records max_pool1d_with_indices(),
// which gives the same.
void max_pool1d_kernel(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  static const auto with_indices = c10::Dispatcher::singleton().findSchemaOrThrow("aten::max_pool1d_with_indices", "");
  Tracer* const tracer = Tracer::current();
  if (tracer == nullptr) return trace_fallback(op, keys, stack);
  tracer->call(with_indices, *stack);
  stack->pop_back();  // the indices
}

void matmul_kernel(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  if (FakeMode::current()) return matmul_of_fakes(op, keys, stack);
  call_without_mode(op, keys, *stack);
}

}  // namespace

void register_trace_kernels() {
  static const NeverDestroyed<torch::Library> all([] {
    torch::Library made(torch::Library::IMPL, "_", c10::DispatchKey::DeferredInit, __FILE__, __LINE__);
    made.fallback(torch::CppFunction::makeFromBoxedFunction<&trace_fallback>());
    return made;
  });
  static const NeverDestroyed<torch::Library> max_pool1d([] {
    torch::Library made(torch::Library::IMPL, "aten", c10::DispatchKey::DeferredInit, __FILE__, __LINE__);
    made.impl("max_pool1d", torch::CppFunction::makeFromBoxedFunction<&max_pool1d_kernel>());
    return made;
  });
  static const NeverDestroyed<torch::Library> matmul([] {
    torch::Library made(torch::Library::IMPL, "aten", c10::DispatchKey::Fake, __FILE__, __LINE__);
    made.impl("matmul", torch::CppFunction::makeFromBoxedFunction<&matmul_kernel>());
    return made;
  });
}

}  // namespace rehearse::capture
