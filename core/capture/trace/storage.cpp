// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/capture/storage.h>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

#include "capture/fake/never_destroyed.h"

namespace rehearse {
namespace {

c10::SymInt storage_bytes_kernel(const at::Tensor& tensor) { return tensor.storage().sym_nbytes(); }

void resize_storage_kernel(const at::Tensor& tensor, c10::SymInt bytes) {
  TORCH_CHECK_VALUE(bytes >= 0, "resize_storage: bytes is ", bytes, "; a storage has 0 or more");
  TORCH_CHECK_NOT_IMPLEMENTED(tensor.device().is_cpu(), "resize_storage: the tensor is on ", tensor.device(),
                              "; only tensors of the CPU can be resized");
  at::native::resize_bytes_nocuda(tensor.storage(), bytes);
}

// Autograd has nothing to do with it.
void define_storage_operators() {
  static const capture::NeverDestroyed<torch::Library> library([] {
    torch::Library made(torch::Library::FRAGMENT, "rehearse", std::nullopt, __FILE__, __LINE__);
    made.def("storage_bytes(Tensor self) -> SymInt");
    made.impl("storage_bytes", c10::DispatchKey::CompositeExplicitAutograd, TORCH_FN(storage_bytes_kernel));
    made.impl("storage_bytes", c10::DispatchKey::Autograd, torch::CppFunction::makeFallthrough());
    made.def("resize_storage(Tensor(a!) self, SymInt bytes) -> ()");
    made.impl("resize_storage", c10::DispatchKey::CompositeExplicitAutograd, TORCH_FN(resize_storage_kernel));
    made.impl("resize_storage", c10::DispatchKey::Autograd, torch::CppFunction::makeFallthrough());
    return made;
  });
}

c10::OperatorHandle find_storage_operator(const char* name) {
  define_storage_operators();
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
}

void check_has_storage(const at::Tensor& tensor, const char* call) {
  TORCH_CHECK_VALUE(tensor.defined(), call, ": the tensor is undefined");
  TORCH_CHECK_VALUE(tensor.has_storage(), call, ": the tensor has no storage: its layout is ", tensor.layout());
}

}  // namespace

c10::SymInt storage_bytes(const at::Tensor& tensor) {
  check_has_storage(tensor, "storage_bytes");
  static const auto op = find_storage_operator("rehearse::storage_bytes").typed<c10::SymInt(const at::Tensor&)>();
  return op.call(tensor);
}

void resize_storage(const at::Tensor& tensor, const c10::SymInt& bytes) {
  check_has_storage(tensor, "resize_storage");
  static const auto op =
      find_storage_operator("rehearse::resize_storage").typed<void(const at::Tensor&, c10::SymInt)>();
  op.call(tensor, bytes);
}

}  // namespace rehearse
