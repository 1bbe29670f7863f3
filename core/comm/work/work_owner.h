// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <c10/util/intrusive_ptr.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <rehearse_internal/comm/group_identity.h>
#include <rehearse_internal/exec/executor.h>

namespace rehearse::comm {

class RankWork;

// What a work needs of its group. Its works keep it alive; when the world is over it is closed, and from then on only
// answers who it was. Ranks are ranks within the group.
class WorkOwner : public c10::intrusive_ptr_target {
 public:
  explicit WorkOwner(GroupIdentity identity) : identity_(std::move(identity)) {}

  const GroupIdentity& identity() const noexcept { return identity_; }

  virtual bool closed() const noexcept = 0;

  // Throws CommError when the world is over.
  virtual exec::RankExecutor& executor() const = 0;

  // A call of `rank` has failed so.
  virtual void note_error(int rank, c10d::ErrorType error) = 0;

  // `rank` has met a failure of one of its calls: what it has in flight may be left behind for it.
  virtual void note_failure_known(int rank) noexcept = 0;

  // Has the call of `work` been left behind for a failure: did its rank have it in flight when it met one, and did one
  // of those for whom it waits meet one, too? Or will one of those never come, because it has crashed?
  virtual bool is_left_behind(const RankWork& work, const std::vector<int>& waits_for) const = 0;

  // The work's rank knows that it is over, or has ordered its stream behind it. May come more than once.
  virtual void note_known(const RankWork& work) noexcept = 0;

  // The work has just ended: its waiters are runnable, its futures not yet marked. Not told when closed.
  virtual void on_end(RankWork& work) = 0;

  // For a work that an interceptor watches: its rank knows that it has ended; nobody can ask it any more. Not called
  // when closed.
  virtual void on_known(const RankWork& work) noexcept = 0;
  virtual void on_released(const RankWork& work) noexcept = 0;

  // For such a work that does not match its peers: see CallInterceptor.
  virtual bool is_unchanged(const RankWork& work) = 0;

  // Nobody can ask the work any more, and nobody has. Not told when closed.
  virtual void on_unasked(const RankWork& work) = 0;

 private:
  const GroupIdentity identity_;
};

}  // namespace rehearse::comm
