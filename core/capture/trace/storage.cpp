// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/capture/storage.h>

#include <ATen/native/Resize.h>
#include <rehearse_internal/operators/own_operator.h>

namespace rehearse {
namespace {

c10::SymInt storage_bytes_kernel(const at::Tensor& tensor) { return tensor.storage().sym_nbytes(); }

void resize_storage_kernel(const at::Tensor& tensor, c10::SymInt bytes) {
  TORCH_CHECK_VALUE(bytes >= 0, "resize_storage: bytes is ", bytes, "; a storage has 0 or more");
  TORCH_CHECK_NOT_IMPLEMENTED(tensor.device().is_cpu(), "resize_storage: the tensor is on ", tensor.device(),
                              "; only tensors of the CPU can be resized");
  at::native::resize_bytes_nocuda(tensor.storage(), bytes);
}

void check_has_storage(const at::Tensor& tensor, const char* call) {
  TORCH_CHECK_VALUE(tensor.defined(), call, ": the tensor is undefined");
  TORCH_CHECK_VALUE(tensor.has_storage(), call, ": the tensor has no storage: its layout is ", tensor.layout());
}

}  // namespace

c10::SymInt storage_bytes(const at::Tensor& tensor) {
  check_has_storage(tensor, "storage_bytes");
  static const auto op = operators::own_operator("storage_bytes", "(Tensor self) -> SymInt", &storage_bytes_kernel,
                                                 operators::Derivative::none);
  return op.call(tensor);
}

void resize_storage(const at::Tensor& tensor, const c10::SymInt& bytes) {
  check_has_storage(tensor, "resize_storage");
  static const auto op = operators::own_operator("resize_storage", "(Tensor(a!) self, SymInt bytes) -> ()",
                                                 &resize_storage_kernel, operators::Derivative::none);
  op.call(tensor, bytes);
}

}  // namespace rehearse
