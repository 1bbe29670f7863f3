// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/operators/passing_memory.h"

#include <dlfcn.h>

namespace rehearse::capture {
namespace {

// True if the address lies in the static data of the program or of a loaded library.
bool is_static(const void* address) {
  Dl_info info = {};
  return dladdr(address, &info) != 0;
}

}  // namespace

bool has_passing_memory(const at::Tensor& tensor) {
  if (tensor.layout() != at::kStrided || !tensor.has_storage()) return false;
  const c10::DataPtr& memory = tensor.storage().data_ptr();
  const bool is_borrowed = memory.get() != nullptr && memory.get_context() == nullptr;
  return is_borrowed && tensor.device().is_cpu() && !is_static(memory.get());
}

}  // namespace rehearse::capture
