// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

namespace rehearse::parallel {

// See no_sync() of DistributedDataParallel and FullyShardedDataParallel. Guards may nest; inner ones must end first. A
// guard is movable, so that a std::optional can hold it: `if (more_to_come) guard.emplace(ddp.no_sync())`. Refers to
// the session; does not block.
template <class Session>
class NoSyncGuard {
 public:
  explicit NoSyncGuard(Session& session) : session_(&session), before_(session.set_gradient_sync(false)) {}
  NoSyncGuard(NoSyncGuard&& other) noexcept
      : session_(std::exchange(other.session_, nullptr)), before_(other.before_) {}
  NoSyncGuard& operator=(NoSyncGuard&&) = delete;
  ~NoSyncGuard() {
    if (session_ != nullptr) session_->set_gradient_sync(before_);
  }

 private:
  Session* session_;
  bool before_;
};

}  // namespace rehearse::parallel
