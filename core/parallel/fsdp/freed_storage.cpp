// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/fsdp/freed_storage.h"

#include <c10/core/Allocator.h>
#include <c10/core/StorageImpl.h>

namespace rehearse::parallel {
namespace {

// The public members of a storage can make the storage refuse access to its elements, but cannot undo the refusal. So
// set the private flag: an explicit instantiation may name private members.
struct RefusesAccess {
  using Member = bool c10::StorageImpl::*;
  friend Member member_of(RefusesAccess);
};

template <RefusesAccess::Member member>
struct OpenedStorage {
  friend RefusesAccess::Member member_of(RefusesAccess) { return member; }
};
template struct OpenedStorage<&c10::StorageImpl::throw_on_immutable_data_ptr_>;

// Setting the pointer makes the storage evaluate the flag again.
void set_memory(c10::StorageImpl& storage, c10::DataPtr memory, std::size_t bytes, bool refuses) {
  storage.*member_of(RefusesAccess()) = refuses;
  storage.set_data_ptr_noswap(std::move(memory));
  storage.set_nbytes(bytes);
}

}  // namespace

void free_storage(const at::Tensor& tensor) {
  c10::StorageImpl& storage = *tensor.storage().unsafeGetStorageImpl();
  set_memory(storage, c10::DataPtr(nullptr, tensor.device()), 0, true);
}

void refuse_when_freed(const at::Tensor& tensor, const std::string& text) {
  c10::StorageImpl& storage = *tensor.storage().unsafeGetStorageImpl();
  const bool refuses = storage.*member_of(RefusesAccess());
  storage.release_data_and_set_meta_custom_data_ptr_error_msg_(text);
  storage.*member_of(RefusesAccess()) = refuses;
}

void refuse_for_good(const at::Tensor& tensor, const std::string& text) {
  refuse_when_freed(tensor, text);
  c10::StorageImpl& storage = *tensor.storage().unsafeGetStorageImpl();
  const auto bytes = static_cast<std::size_t>(tensor.numel()) * tensor.element_size();
  set_memory(storage, c10::DataPtr(nullptr, tensor.device()), bytes, true);
}

void fill_storage(const at::Tensor& tensor, std::size_t bytes) {
  c10::StorageImpl& storage = *tensor.storage().unsafeGetStorageImpl();
  set_memory(storage, c10::GetAllocator(tensor.device().type())->allocate(bytes), bytes, false);
}

}  // namespace rehearse::parallel
