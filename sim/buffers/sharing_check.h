// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <list>
#include <memory_resource>
#include <vector>

#include <c10/core/StorageImpl.h>
#include <c10/util/SmallVector.h>
#include <c10/util/flat_hash_map.h>
#include <c10/util/intrusive_ptr.h>

#include "call_watch.h"
#include "finding.h"
#include "footprint.h"

namespace rehearse::sim {

// Finds memory that two ranks share: both pass it to calls, and at least one of these calls writes it. Such memory is a
// global of the program, or a tensor made outside the ranks. In a real job each rank is a process and shares no memory.
// While both calls are under way, the check finds such memory even if two storages share it. At other times it finds
// the memory only if both calls use the same storage. The constructor's argument must outlive this object.
class SharingCheck final : public CallChecker {
 public:
  explicit SharingCheck(exec::RankExecutor& executor) : finding_(executor) {}

  void begin(WatchedCall& call, const std::vector<SharedBytes>& shared) override;
  void forget(const WatchedCall& call) noexcept override;

  // See Finding::blamed().
  const std::vector<int>& blamed() const noexcept { return finding_.blamed(); }

 private:
  // The latest read, or the latest write, of a storage by one rank.
  struct Past {
    int rank;
    bool writes;
    Footprint footprint;
    CallTitle call;
    exec::CallSite where;
  };
  struct StorageUse {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;  // keeps the address, the key, from being reused
    c10::SmallVector<Past, 1> past;
  };
  using StorageUses = std::pmr::list<StorageUse>;

  void compare_with_past(const WatchedBuffer& buffer, const WatchedCall& call);
  void note(const WatchedBuffer& buffer, const WatchedCall& call);
  void drop_freed_storages();

  Finding finding_;
  std::pmr::unsynchronized_pool_resource memory_;
  StorageUses uses_{&memory_};
  ska::flat_hash_map<const c10::StorageImpl*, StorageUse*> by_storage_;  // never iterated
  std::size_t uses_most_ = 1'024;
};

}  // namespace rehearse::sim
