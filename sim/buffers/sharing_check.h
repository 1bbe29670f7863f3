// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include <c10/core/StorageImpl.h>
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

  void begin(WatchedCall& call, const CallsOfRank& before) override;
  bool move(const WatchedCall&) override { return true; }
  void forget(const WatchedCall& call) noexcept override;

 private:
  // What a rank has done last with a storage: read it, or written to it.
  struct Past {
    int rank;
    bool writes;
    Footprint footprint;
    std::string call;  // described
  };
  struct StorageUse {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;  // keeps the key from being given to another one
    std::vector<Past> past;
  };

  void compare(const WatchedBuffer& buffer, const WatchedCall& call, const WatchedBuffer& other_buffer,
               const WatchedCall& other);
  void compare_with_past(const WatchedBuffer& buffer, const WatchedCall& call);
  void drop_freed_storages();

  Finding finding_;
  // The calls at each address, from the key to the next one. Few calls are at one place.
  std::map<const std::byte*, std::vector<const WatchedCall*>> under_way_;
  std::map<const std::byte*, std::vector<const WatchedCall*>>::iterator split_at(const std::byte* address);
  std::unordered_map<const c10::StorageImpl*, StorageUse> storages_;  // looked up; walked to drop only
  std::size_t storages_most_ = 1'024;
};

}  // namespace rehearse::sim
