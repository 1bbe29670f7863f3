// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include <rehearse/compile/guard_failure.h>
#include <rehearse/compile/watch.h>

namespace rehearse::compiler {

// What a capture was told to watch.
class WatchList {
 public:
  void add(std::shared_ptr<const Watched> watched) { watched_.push_back(std::move(watched)); }
  bool holds(GuardFailure* failure = nullptr) const {
    for (const auto& watched : watched_) {
      if (watched->holds()) continue;
      if (failure) *failure = watched->failure();
      return false;
    }
    return true;
  }

 private:
  std::vector<std::shared_ptr<const Watched>> watched_;
};

// While it lives, what watch() is called with in this fiber goes into `list`. `frame`: an address in the frame of the
// compiled call, above which addresses on the stack are the caller's.
class WatchScope {
 public:
  WatchScope(WatchList& list, const void* frame);
  ~WatchScope();
  WatchScope(const WatchScope&) = delete;
  WatchScope& operator=(const WatchScope&) = delete;

  void add(const void* address, std::shared_ptr<const Watched> watched);

 private:
  WatchScope* before_;
  WatchList& list_;
  const void* frame_;
};

}  // namespace rehearse::compiler
