// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <exception>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <c10/util/intrusive_ptr.h>

#include "process/check/messages.h"

namespace rehearse::real {

// A call that waits for its peers.
class AwaitedCall : public c10::intrusive_ptr_target {
 public:
  // The peers are there. Runs on the session's thread for carrying out calls, in the order in which the coordinator let
  // these calls go.
  virtual void go(const Go& go) = 0;
  // The call is a monitoredBarrier() that rank 0 has given up.
  virtual void fail(const BarrierFailed& failed) = 0;
  // The world ends before the peers come.
  virtual void stop(const std::exception_ptr& why) = 0;
};
using AwaitedCallPtr = c10::intrusive_ptr<AwaitedCall>;

// A rank's calls about which the coordinator has not decided yet.
class OpenCalls {
 public:
  void add(Matched what, const CallMade& made, AwaitedCallPtr call) {
    open_.emplace(Key{what, made.group, made.sequence}, std::move(call));
  }

  // Null: this call does not wait, because it has ended with the world, or because the coordinator's message is about a
  // group (Matched::group).
  AwaitedCallPtr take(Matched what, const std::string& group, std::uint64_t sequence) {
    const auto found = open_.find(Key{what, group, sequence});
    if (found == open_.end()) return nullptr;
    auto call = std::move(found->second);
    open_.erase(found);
    return call;
  }

  std::vector<AwaitedCallPtr> take_all() {
    std::vector<AwaitedCallPtr> all;
    for (auto& [key, call] : open_) all.push_back(std::move(call));
    open_.clear();
    return all;
  }

 private:
  using Key = std::tuple<Matched, std::string, std::uint64_t>;

  std::map<Key, AwaitedCallPtr> open_;
};

}  // namespace rehearse::real
