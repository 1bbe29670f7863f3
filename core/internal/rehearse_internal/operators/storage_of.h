// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/TensorBase.h>

namespace rehearse::operators {

// The storage of a tensor, even if the tensor has no data. Tensors that share memory have the same storage. Null for an
// undefined tensor, and for one without a storage, such as a sparse tensor.
inline c10::StorageImpl* storage_of(const at::TensorBase& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) return nullptr;
  return tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
}

}  // namespace rehearse::operators
