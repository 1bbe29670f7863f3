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
// tensor's memory is freed. A capture recognizes the error by this text: operators in a capture fill no memory.
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

// While this object lives, its guard is called before each operator of the fiber that made the object, if the storage
// of an argument, or of a tensor in a list argument, was added here. The guard is not called for operators on fakes,
// nor for operators in captures. If the guard was called for an `aten::` operator that is not composite, no guard is
// called for the operators that this operator's kernel calls. Implemented by a boxed fallback at a dispatch key above
// that of SeenOperators.
class GuardedStorages {
 public:
  explicit GuardedStorages(StorageGuard& guard);
  GuardedStorages(const GuardedStorages&) = delete;
  GuardedStorages& operator=(const GuardedStorages&) = delete;
  ~GuardedStorages();

  // Guards the storage of the tensor, which must have one. The guard gets `tag` with each use. Returns false if the
  // storage is already guarded.
  bool add(const at::Tensor& tensor, std::size_t tag);

  // True in the fiber that made the object; the guard is called only there.
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
