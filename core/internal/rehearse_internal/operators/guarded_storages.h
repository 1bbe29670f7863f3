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

// Hears that an operator is about to use the memory of tensors.
class StorageGuard {
 public:
  struct Use {
    std::size_t tag;  // see GuardedStorages::add()
    bool is_written;  // the operator changes the tensor in place
  };

  // Right before `op` runs, and before any OperatorWatcher hears of it: all that it uses of this guard's storages, in
  // order of its arguments. May suspend. What is thrown here, the operator's caller meets.
  virtual void before_use(const std::vector<Use>& uses, const c10::OperatorHandle& op) = 0;

 protected:
  StorageGuard() = default;
  ~StorageGuard() = default;
};

// While it lives, the guard hears of operators of the fiber that made it, if one of their arguments, or a tensor of a
// list among them, has a storage that was added here. A boxed fallback at a dispatch key above that of OperatorWatcher
// sees them; a fiber without guarded storages does not have the key. Operators on fakes and in captures are not told.
class GuardedStorages {
 public:
  explicit GuardedStorages(StorageGuard& guard);
  GuardedStorages(const GuardedStorages&) = delete;
  GuardedStorages& operator=(const GuardedStorages&) = delete;
  ~GuardedStorages();

  // False if the storage is guarded already. The tensor has one.
  bool add(const at::Tensor& tensor, std::size_t tag);

  // Does the calling fiber's code come to the guard? That of other fibers does not.
  bool is_seen_here() const;

 private:
  struct Table;
  friend struct TableAccess;

  StorageGuard* const guard_;
  const std::shared_ptr<Table> table_;  // of the fiber that made it
  std::vector<c10::Storage> added_;
};

// While it lives, no guard hears of the calling fiber's operators.
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
