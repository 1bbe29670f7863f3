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
class Awaited : public c10::intrusive_ptr_target {
 public:
  // They are there: on the session's thread for what is carried out, in the order of the judge's words.
  virtual void go(const Go& go) = 0;
  // It is a monitoredBarrier() that rank 0 has given up.
  virtual void fail(const BarrierFailed& failed) = 0;
  // The world ends first.
  virtual void stop(const std::exception_ptr& why) = 0;
};
using AwaitedPtr = c10::intrusive_ptr<Awaited>;

// A rank's calls of which the judge has not spoken.
class OpenCalls {
 public:
  void add(Matched what, const CallMade& made, AwaitedPtr call) {
    open_.emplace(Key{what, made.group, made.sequence}, std::move(call));
  }

  // Null: it has ended with the world.
  AwaitedPtr take(Matched what, const std::string& group, std::uint64_t sequence) {
    const auto found = open_.find(Key{what, group, sequence});
    if (found == open_.end()) return nullptr;
    auto call = std::move(found->second);
    open_.erase(found);
    return call;
  }

  std::vector<AwaitedPtr> take_all() {
    std::vector<AwaitedPtr> all;
    for (auto& [key, call] : open_) all.push_back(std::move(call));
    open_.clear();
    return all;
  }

 private:
  using Key = std::tuple<Matched, std::string, std::uint64_t>;

  std::map<Key, AwaitedPtr> open_;
};

}  // namespace rehearse::real
