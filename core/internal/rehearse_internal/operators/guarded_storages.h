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

// Hears that an operator is about to use the memory of a tensor.
class StorageGuard {
 public:
  // Right before `op` runs, and before any OperatorWatcher hears of it. `tag`: see GuardedStorages::add().
  // `is_written`: the operator changes the tensor in place. May suspend. What is thrown here, the operator's caller
  // meets.
  virtual void before_use(std::size_t tag, const c10::OperatorHandle& op, bool is_written) = 0;

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
