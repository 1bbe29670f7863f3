// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/TensorBase.h>

namespace rehearse::operators {

// The storage of a tensor, which need not have data. Tensors that share memory have the same one. Null if the tensor is
// undefined, or has none, as sparse ones.
inline c10::StorageImpl* storage_of(const at::TensorBase& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) return nullptr;
  return tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
}

}  // namespace rehearse::operators
