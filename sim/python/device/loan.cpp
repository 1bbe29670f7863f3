// SPDX-License-Identifier: BSD-3-Clause
#include "python/device/loan.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include <ATen/SparseTensorImpl.h>
#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <c10/core/CPUAllocator.h>

#include "python/device/cuda.h"

namespace rehearse::python {
namespace {

// Arguments that may be on the CPU beside tensors on a GPU.
struct OnEither {
  std::string_view op, argument;
};
constexpr std::array kOnEither{
    OnEither{"aten::index", "indices"},
    OnEither{"aten::index_put_", "indices"},
    OnEither{"aten::index_put", "indices"},
    OnEither{"aten::_index_put_impl_", "indices"},
    OnEither{"aten::_unsafe_index", "indices"},
    OnEither{"aten::_unsafe_index_put", "indices"},
    OnEither{"aten::_ctc_loss", "targets"},
    OnEither{"aten::_ctc_loss", "input_lengths"},
    OnEither{"aten::_ctc_loss", "target_lengths"},
    OnEither{"aten::_ctc_loss_backward", "targets"},
    OnEither{"aten::_ctc_loss_backward", "input_lengths"},
    OnEither{"aten::_ctc_loss_backward", "target_lengths"},
};

bool is_written(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

bool may_be_on_cpu(const c10::OperatorHandle& op, const at::Tensor& tensor, const c10::Argument& argument) {
  if (tensor.dim() == 0 && !is_written(argument)) return true;
  const std::string_view name = op.operator_name().name;
  return std::ranges::any_of(kOnEither,
                             [&](const OnEither& each) { return each.op == name && each.argument == argument.name(); });
}

at::SparseTensorImpl* sparse_impl(const at::Tensor& tensor) {
  return static_cast<at::SparseTensorImpl*>(tensor.unsafeGetTensorImpl());
}

void forget_storage(void* storage) { delete static_cast<c10::Storage*>(storage); }

c10::DataPtr data_of(const c10::Storage& storage, c10::Device device) {
  return {storage.mutable_data(), new c10::Storage(storage), &forget_storage, device};
}

c10::DispatchKeySet keys_of(c10::Device device) {
  return c10::DispatchKeySet(device.is_cpu() ? c10::DispatchKey::CPU : c10::DispatchKey::PrivateUse1);
}

// A tensor like `tensor` in a storage that has the same bytes.
at::Tensor in_storage(c10::Storage storage, const at::Tensor& tensor) {
  auto keys = keys_of(storage.device());
  if (tensor._is_zerotensor()) keys = keys.add(c10::DispatchKey::ZeroTensor);  // it has no memory
  auto result = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), keys, tensor.dtype());
  auto* const impl = result.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(tensor.sizes(), tensor.strides(), tensor.storage_offset());
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) impl->set_wrapped_number(true);
  if (tensor.is_conj()) result._set_conj(true);
  if (tensor.is_neg()) result._set_neg(true);
  return result;
}

void require_layout(const at::Tensor& tensor, const c10::OperatorHandle& op) {
  const bool is_plain = tensor.layout() == at::kStrided || tensor.layout() == at::kSparse;
  TORCH_CHECK_NOT_IMPLEMENTED(is_plain && !tensor.is_quantized() && !tensor.is_nested(),
                              "rehearse --cuda=device: ", op.operator_name(), " on a tensor that is ",
                              tensor.is_quantized() ? "quantized"
                              : tensor.is_nested()  ? "nested"
                                                    : "sparse by rows or blocks",
                              "; run with --cuda");
}

// Calls `change` for each tensor in the value, and puts its result in the place.
template <class Change>
void change_tensors(c10::IValue& value, const Change& change) {
  if (value.isTensor()) {
    value = change(value.toTensor());
  } else if (value.isTensorList()) {
    auto list = value.toTensorVector();
    for (auto& tensor : list) tensor = change(tensor);
    value = c10::List<at::Tensor>(list);
  } else if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector())
      list.push_back(tensor ? std::optional(change(*tensor)) : tensor);
    value = list;
  }
}

}  // namespace

at::Tensor labelled(const at::Tensor& tensor, c10::Device device) {
  auto* const allocator = device.is_cpu() ? c10::GetCPUAllocator() : &cuda_allocator();
  const auto& storage = tensor.storage();
  return in_storage({c10::Storage::use_byte_size_t(), storage.nbytes(), data_of(storage, device), allocator, true},
                    tensor);
}

void Loan::lend(c10::IValue& value, const c10::Argument& argument) {
  if (value.isDevice() && value.toDevice().type() == kCuda) {
    if (value.toDevice().has_index()) index_ = value.toDevice().index();
    value = c10::Device(c10::kCPU);
  } else {
    change_tensors(value, [&](const at::Tensor& tensor) { return lend(tensor, argument); });
  }
}

c10::Device Loan::device() const { return index_ < 0 ? current_cuda_device() : c10::Device(kCuda, index_); }

void Loan::require_one_device(const at::Tensor& tensor, const c10::Argument& argument) {
  if (tensor.device().type() == kCuda && pairs_.empty()) index_ = tensor.device().index();
  TORCH_CHECK(tensor.device() == device() || (tensor.is_cpu() && may_be_on_cpu(op_, tensor, argument)),
              "Expected all tensors to be on the same device, but found at least two devices, ", device(), " and ",
              tensor.device(), "! (argument ", argument.name(), " of ", op_.operator_name(), ")");
}

at::Tensor Loan::lend(const at::Tensor& tensor, const c10::Argument& argument) {
  if (!tensor.defined()) return tensor;
  require_one_device(tensor, argument);
  if (tensor.is_cpu()) return tensor;
  require_layout(tensor, op_);
  for (const auto& pair : pairs_) {
    if (pair.tensor.is_same(tensor)) return pair.lent;
  }
  if (tensor.is_sparse()) return lend_sparse(tensor);
  auto lent = labelled(tensor, c10::kCPU);
  pairs_.push_back({tensor, lent, lent.storage().data()});
  return lent;
}

at::Tensor Loan::lend_sparse(const at::Tensor& tensor) {
  const auto* const impl = sparse_impl(tensor);
  const auto part = [&](const at::Tensor& of) {
    auto lent = labelled(of, c10::kCPU);
    pairs_.push_back({of, lent, lent.storage().data()});
    return lent;
  };
  const auto indices = part(impl->indices()), values = part(impl->values());
  auto lent = at::_sparse_coo_tensor_unsafe(indices, values, tensor.sizes(), values.options().layout(at::kSparse),
                                            impl->coalesced());
  pairs_.push_back({tensor, lent, nullptr});
  return lent;
}

void Loan::give_back() {
  for (const auto& [tensor, lent, data] : pairs_) {
    if (tensor.is_sparse()) {
      const auto* const from = sparse_impl(lent);
      auto* const to = sparse_impl(tensor);
      to->raw_resize_(from->sparse_dim(), from->dense_dim(), from->sizes());
      to->set_indices_and_values_unsafe(take(from->indices()), take(from->values()));
      to->set_coalesced(from->coalesced());
      continue;
    }
    if (lent.storage().data() != data) {
      auto* const storage = tensor.storage().unsafeGetStorageImpl();
      storage->set_data_ptr_noswap(data_of(lent.storage(), tensor.device()));
      storage->set_nbytes(lent.storage().nbytes());
    }
    if (tensor.sizes() != lent.sizes() || tensor.strides() != lent.strides())
      tensor.unsafeGetTensorImpl()->set_sizes_and_strides(lent.sizes(), lent.strides(), lent.storage_offset());
  }
}

void Loan::take(c10::IValue& result) const {
  change_tensors(result, [&](const at::Tensor& tensor) { return take(tensor); });
}

at::Tensor Loan::take(const at::Tensor& result) const {
  if (!result.defined()) return result;
  for (const auto& pair : pairs_) {
    if (pair.lent.is_same(result)) return pair.tensor;
  }
  require_layout(result, op_);
  if (result.is_sparse()) return take_sparse(result);
  for (const auto& pair : pairs_) {
    if (!pair.lent.is_sparse() && pair.lent.storage().is_alias_of(result.storage()))
      return in_storage(pair.tensor.storage(), result);
  }
  return labelled(result, device());
}

at::Tensor Loan::take_sparse(const at::Tensor& result) const {
  const auto* const from = sparse_impl(result);
  auto tensor = at::detail::make_tensor<at::SparseTensorImpl>(c10::DispatchKeySet(c10::DispatchKey::SparsePrivateUse1),
                                                              result.dtype());
  auto* const to = sparse_impl(tensor);
  to->raw_resize_(from->sparse_dim(), from->dense_dim(), from->sizes());
  to->set_indices_and_values_unsafe(take(from->indices()), take(from->values()));
  to->set_coalesced(from->coalesced());
  return tensor;
}

}  // namespace rehearse::python
