// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include <rehearse_internal/exec/check.h>

#include "exec/time/doorbell.h"

namespace rehearse::exec {

// What other threads have brought for a world; see Inbox. It lives as long as any of those who may come.
class Outside {
 public:
  struct Posted {
    int rank;
    std::function<void()> work;
  };

  // From any thread. False: the world is over.
  bool post(Posted posted) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_) return false;
      posted_.push_back(std::move(posted));
      any_.store(true, std::memory_order_relaxed);
    }
    ring_doorbell();
    return true;
  }

  void begin_errand() noexcept { errands_.fetch_add(1); }
  void end_errand() noexcept {
    const int before = errands_.fetch_sub(1);
    REHEARSE_CHECK(before > 0, before);
    ring_doorbell();
  }
  bool any_errand() const noexcept { return errands_.load() > 0; }

  // On the executor's thread: all that has come, in order.
  std::vector<Posted> take() {
    if (!any_.load(std::memory_order_relaxed)) return {};
    const std::lock_guard lock(mutex_);
    any_.store(false, std::memory_order_relaxed);
    return std::exchange(posted_, {});
  }

  // The world is over. What has come too late goes here.
  void close() {
    std::vector<Posted> late;
    const std::lock_guard lock(mutex_);
    closed_ = true;
    late.swap(posted_);
  }

 private:
  std::mutex mutex_;
  std::vector<Posted> posted_;
  bool closed_ = false;
  std::atomic<bool> any_{false};
  std::atomic<int> errands_{0};
};

}  // namespace rehearse::exec
