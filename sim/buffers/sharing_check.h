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

// Memory that two ranks give to their calls, at least one of which writes there: a global of the program, or a tensor
// made outside of the ranks. Processes of their own share none. Found where both calls are under way, whatever storages
// the memory is in; and at any time where it is in one storage. What is given outlives it.
class SharingCheck final : public CallChecker {
 public:
  explicit SharingCheck(exec::RankExecutor& executor) : finding_(executor) {}

  void begin(WatchedCall& call, const std::vector<SharedBytes>& shared) override;
  void forget(const WatchedCall& call) noexcept override;

 private:
  // What a rank has done last with a storage: read it, or written to it.
  struct Past {
    int rank;
    bool writes;
    Footprint footprint;
    CallTitle call;
    exec::CallSite where;
  };
  struct StorageUse {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;  // keeps the key from being given to another one
    c10::SmallVector<Past, 1> past;
  };
  using StorageUses = std::pmr::list<StorageUse>;

  void compare_with_past(const WatchedBuffer& buffer, const WatchedCall& call);
  void note(const WatchedBuffer& buffer, const WatchedCall& call);
  void drop_freed_storages();

  Finding finding_;
  std::pmr::unsynchronized_pool_resource memory_;
  StorageUses uses_{&memory_};
  ska::flat_hash_map<const c10::StorageImpl*, StorageUse*> by_storage_;  // looked up, never walked
  std::size_t uses_most_ = 1'024;
};

}  // namespace rehearse::sim
