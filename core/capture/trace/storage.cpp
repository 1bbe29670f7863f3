// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/capture/storage.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include <ATen/ops/empty.h>
#include <c10/core/Allocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/StorageImpl.h>
#include <rehearse_internal/operators/own_operator.h>

namespace rehearse {
namespace {

c10::SymInt storage_bytes_kernel(const at::Tensor& tensor) { return tensor.storage().sym_nbytes(); }

// Copies by an operator, on the device's current stream: the allocator's own copy would wait for no stream.
c10::DataPtr device_memory(const c10::Storage& storage, std::int64_t bytes, std::int64_t kept) {
  const auto options = at::TensorOptions(at::kByte).device(storage.device());
  const at::Tensor made = at::empty({bytes}, options);
  if (kept > 0) made.narrow(0, 0, kept).copy_(at::empty({0}, options).set_(storage, 0, {kept}, {1}));
  return made.storage().set_data_ptr(c10::DataPtr(nullptr, storage.device()));
}

c10::DataPtr host_memory(const c10::Storage& storage, std::int64_t bytes, std::int64_t kept) {
  if (bytes == 0) return {nullptr, storage.device()};
  c10::DataPtr memory = storage.allocator()->allocate(static_cast<std::size_t>(bytes));
  if (kept > 0) std::memcpy(memory.mutable_get(), storage.data(), static_cast<std::size_t>(kept));
  return memory;
}

void resize(const c10::Storage& storage, std::int64_t bytes) {
  TORCH_CHECK(storage.resizable(), "resize_storage: the tensor's memory cannot be resized");
  const auto kept = std::min(bytes, static_cast<std::int64_t>(storage.nbytes()));
  const c10::DeviceGuard on_its_device(storage.device());
  auto memory = storage.device().is_cpu() ? host_memory(storage, bytes, kept) : device_memory(storage, bytes, kept);
  storage.unsafeGetStorageImpl()->set_data_ptr_noswap(std::move(memory));
  storage.set_nbytes(static_cast<std::size_t>(bytes));
}

void resize_storage_kernel(const at::Tensor& tensor, c10::SymInt bytes) {
  TORCH_CHECK_VALUE(bytes >= 0, "resize_storage: bytes is ", bytes, "; a storage has 0 or more");
  TORCH_CHECK_NOT_IMPLEMENTED(tensor.is_cpu() || tensor.is_cuda(), "resize_storage: the tensor is on ", tensor.device(),
                              "; only tensors of the CPU and of GPUs can be resized");
  resize(tensor.storage(), bytes.expect_int());
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
