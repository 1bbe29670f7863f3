// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace c10 {
class OperatorHandle;
}

namespace rehearse::operators {

// Part of the error that code gets if it asks for the elements of a guarded tensor (data_ptr(), an accessor) while the
// tensor's memory is free. A capture, whose operators fill no memory, recognizes the error by this text.
inline constexpr const char* kElementsNotHere = " is asked for its elements, which are not here";

// Called when an operator is about to use the memory of tensors.
class StorageGuard {
 public:
  struct Use {
    std::size_t tag;  // see GuardedStorages::add()
    bool is_written;  // the operator changes the tensor in place
  };

  // Called right before `op` runs, and before any OperatorWatcher. `uses`: all uses of this guard's storages, in order
  // of the arguments. May suspend. If it throws, the operator's caller gets the exception.
  virtual void before_use(const std::vector<Use>& uses, const c10::OperatorHandle& op) = 0;

 protected:
  StorageGuard() = default;
  ~StorageGuard() = default;
};

// While it lives, the guard is called for operators of the fiber that made it if an argument, or a tensor in a list
// argument, has a storage added here. Implemented by a boxed fallback at a dispatch key above OperatorWatcher's; fibers
// without guarded storages do not have the key. The guard is not called for operators on fakes and in captures.
class GuardedStorages {
 public:
  explicit GuardedStorages(StorageGuard& guard);
  GuardedStorages(const GuardedStorages&) = delete;
  GuardedStorages& operator=(const GuardedStorages&) = delete;
  ~GuardedStorages();

  // Returns false if the storage is already guarded. The tensor must have a storage.
  bool add(const at::Tensor& tensor, std::size_t tag);

  // Whether the guard is called for the calling fiber's operators. It is not for those of other fibers.
  bool is_seen_here() const;

 private:
  struct Table;
  friend struct TableAccess;

  StorageGuard* const guard_;
  const std::shared_ptr<Table> table_;  // belongs to the fiber that made the object
  std::vector<c10::Storage> added_;
};

// While it lives, no guard is called for the calling fiber's operators.
class UnguardedStorages {
 public:
  UnguardedStorages();
  UnguardedStorages(const UnguardedStorages&) = delete;
  UnguardedStorages& operator=(const UnguardedStorages&) = delete;
  ~UnguardedStorages() = default;

 private:
  const c10::impl::ExcludeDispatchKeyGuard key_;
};

}  // namespace rehearse::operators
