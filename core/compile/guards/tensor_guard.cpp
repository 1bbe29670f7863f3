// SPDX-License-Identifier: BSD-3-Clause
#include "compile/guards/tensor_guard.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <torch/csrc/autograd/variable.h>

#include <rehearse_internal/capture/fake_tensor.h>

namespace rehearse::compiler {

TensorGuard::TensorGuard(const at::Tensor& tensor, std::string source, const std::vector<bool>& varies)
    : key_set_(tensor.key_set().raw_repr()),
      device_(tensor.device()),
      dtype_(tensor.scalar_type()),
      requires_grad_(tensor.requires_grad()),
      is_wrapped_number_(tensor.unsafeGetTensorImpl()->is_wrapped_number()),
      dim_(tensor.dim()),
      storage_offset_(tensor.storage_offset()),
      source_(std::move(source)) {
  if (!tensor.unsafeGetTensorImpl()->has_storage()) return;
  const auto sizes = tensor.sizes();
  const auto strides = tensor.strides();
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    dimensions_.push_back(
        {.size = !varies.empty() && varies[i] ? kVaries : sizes[i], .stride = strides[i], .follows = -1});
  }
  // If sizes vary, a stride that equals the product of another dimension's stride and size varies with that product.
  if (std::ranges::find(varies, true) == varies.end()) {
    fix_layout();
    return;
  }
  // Start at the innermost dimension, as PyTorch does when it infers strides (_compute_symbolic_stride of
  // torch/fx/experimental/symbolic_shapes.py).
  const std::vector<std::int64_t> outermost_first = capture::outermost_first(strides);
  const std::vector<std::size_t> order(outermost_first.rbegin(), outermost_first.rend());
  for (std::size_t k = 1; k < order.size(); ++k) {
    for (std::size_t before = 0; before < k; ++before) {
      const std::size_t j = order[before];
      if (strides[j] * sizes[j] != strides[order[k]] || sizes[j] == 0) continue;
      dimensions_[order[k]].follows = static_cast<std::int32_t>(j);
    }
  }
}

void TensorGuard::expect_as(const graph::TensorMeta& captured) {
  requires_grad_ = captured.requires_grad;
  if (captured.sizes.size() != captured.strides.size()) return;
  std::vector<Dimension> dimensions;
  for (std::size_t i = 0; i < captured.sizes.size(); ++i) {
    if (captured.sizes[i].is_symbolic() || captured.strides[i].is_symbolic()) return;
    dimensions.push_back({captured.sizes[i].number(), captured.strides[i].number(), -1});
  }
  dim_ = static_cast<std::int64_t>(dimensions.size());
  if (dimensions_.empty()) return;
  dimensions_ = std::move(dimensions);
  fix_layout();
}

void TensorGuard::fix_layout() {
  fixed_layout_.clear();
  for (const Dimension& each : dimensions_) fixed_layout_.push_back(each.size);
  for (const Dimension& each : dimensions_) fixed_layout_.push_back(each.stride);
}

bool TensorGuard::surely_holds(const c10::TensorImpl& impl) const noexcept {
  if (impl.key_set().raw_repr() != key_set_ || impl.dtype().toScalarType() != dtype_) return false;
  if (fixed_layout_.empty() || guards_offset_ || guards_storage_) return false;
  const auto* const meta = static_cast<const torch::autograd::AutogradMeta*>(impl.autograd_meta());
  // A view may get requires_grad from its base. For other tensors, read it without a call into LibTorch, in the same
  // way as AutogradMeta::requires_grad().
  if (meta != nullptr && meta->is_view_) return false;
  const bool requires_grad = meta != nullptr && (meta->requires_grad_ || meta->grad_fn_ != nullptr);
  if (requires_grad != requires_grad_) return false;
  if (meta != nullptr && meta->fw_grad_ != nullptr) return false;  // it may have a tangent
  if (impl.device() != device_ || impl.is_wrapped_number() != is_wrapped_number_) return false;
  const at::IntArrayRef sizes = impl.sizes(), strides = impl.strides();
  const std::size_t count = sizes.size();
  if (fixed_layout_.size() != 2 * count) return false;
  for (std::size_t i = 0; i < count; ++i) {
    if (sizes[i] != fixed_layout_[i] || strides[i] != fixed_layout_[count + i]) return false;
  }
  return true;
}

void TensorGuard::prefetch(const c10::TensorImpl& impl) const noexcept {
  constexpr std::size_t kLine = 64;
  const auto* const memory = reinterpret_cast<const char*>(&impl);
  for (std::size_t at = 0; at < sizeof(c10::TensorImpl); at += kLine) __builtin_prefetch(memory + at);
  __builtin_prefetch(fixed_layout_.data());
}

std::size_t TensorGuard::first_doubtful(const std::vector<TensorGuard>& guards, const std::vector<at::Tensor>& tensors,
                                        std::size_t from) noexcept {
  // A model has more parameters than fit into the first-level cache, so prefetch a few parameters ahead.
  constexpr std::size_t kAhead = 4;
  const std::size_t count = guards.size();
  for (std::size_t i = from; i < count; ++i) {
    if (i + kAhead < count) guards[i + kAhead].prefetch(*tensors[i + kAhead].unsafeGetTensorImpl());
    if (!guards[i].surely_holds(*tensors[i].unsafeGetTensorImpl())) return i;
  }
  return count;
}

bool TensorGuard::fail(GuardFailure* failure, const std::string& field, std::string expected, std::string found) const {
  if (failure) {
    *failure = {source_ + field, std::move(expected), std::move(found), graph::source_line(origin_)};
  }
  return false;
}

bool TensorGuard::holds(const at::Tensor& tensor, GuardFailure* failure) const {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  if (surely_holds(impl)) return true;
  if (!tensor.defined()) return fail(failure, "", "a tensor", "none");
  if (const auto dtype = tensor.scalar_type(); dtype != dtype_) {
    return fail(failure, ".dtype", c10::toString(dtype_), failure ? c10::toString(dtype) : "");
  }
  if (const auto device = impl.device(); device != device_) {
    return fail(failure, ".device", failure ? device_.str() : "", failure ? device.str() : "");
  }
  if (const auto keys = impl.key_set().raw_repr(); keys != key_set_) {
    return fail(failure, ".key_set",
                failure ? c10::toString(c10::DispatchKeySet(c10::DispatchKeySet::RAW, key_set_)) : "",
                failure ? c10::toString(impl.key_set()) : "");
  }
  if (const bool requires_grad = tensor.requires_grad(); requires_grad != requires_grad_) {
    return fail(failure, ".requires_grad", requires_grad_ ? "true" : "false", requires_grad ? "true" : "false");
  }
  if (capture::has_tangent(tensor)) return fail(failure, "'s tangent", "none", "one of forward-mode differentiation");
  if (const bool is_number = impl.is_wrapped_number(); is_number != is_wrapped_number_) {
    return fail(failure, ".is_wrapped_number()", is_wrapped_number_ ? "true" : "false", is_number ? "true" : "false");
  }
  if (const auto dim = impl.dim(); dim != dim_) {
    return fail(failure, ".dim()", failure ? std::to_string(dim_) : "", failure ? std::to_string(dim) : "");
  }
  if (guards_offset_ && storage_offset_ != impl.storage_offset()) {
    return fail(failure, ".storage_offset()", failure ? std::to_string(storage_offset_) : "",
                failure ? std::to_string(impl.storage_offset()) : "");
  }
  if (guards_storage_ && !holds_storage(tensor, failure)) return false;
  return dimensions_.empty() || holds_layout(impl, failure);
}

void TensorGuard::guard_storage(std::optional<std::int64_t> bytes) noexcept {
  guards_storage_ = true;
  storage_bytes_ = bytes;
}

bool TensorGuard::holds_storage(const at::Tensor& tensor, GuardFailure* failure) const {
  const auto found = static_cast<std::int64_t>(tensor.storage().nbytes());
  const std::int64_t expected =
      storage_bytes_ ? *storage_bytes_ : capture::bytes_of_elements(capture::spec_of(tensor)).as_int_unchecked();
  if (found == expected) return true;
  return fail(failure, ".storage_bytes", std::to_string(expected), std::to_string(found));
}

bool TensorGuard::holds_layout(const c10::TensorImpl& impl, GuardFailure* failure) const {
  const auto sizes = impl.sizes();
  const auto strides = impl.strides();
  for (std::size_t i = 0; i < dimensions_.size(); ++i) {
    const std::int64_t size = dimensions_[i].size;
    if (size == kVaries || size == sizes[i]) continue;
    return failure && fail(failure, fmt::format(".size({})", i), std::to_string(size), std::to_string(sizes[i]));
  }
  for (std::size_t i = 0; i < dimensions_.size(); ++i) {
    const Dimension& dimension = dimensions_[i];
    const std::int64_t stride =
        dimension.follows < 0 ? dimension.stride : strides[dimension.follows] * sizes[dimension.follows];
    if (stride == strides[i]) continue;
    return failure && fail(failure, fmt::format(".stride({})", i), std::to_string(stride), std::to_string(strides[i]));
  }
  return true;
}

}  // namespace rehearse::compiler
