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

// The functions of a group that its works need. Works keep the owner alive. After the end of the world the owner is
// closed, and then only its identity is valid. Ranks are ranks in the group.
class WorkOwner : public c10::intrusive_ptr_target {
 public:
  explicit WorkOwner(GroupIdentity identity) : identity_(std::move(identity)) {}

  const GroupIdentity& identity() const noexcept { return identity_; }

  virtual bool closed() const noexcept = 0;

  // Throws CommError after the end of the world.
  virtual exec::RankExecutor& executor() const = 0;

  // A call of `rank` has failed with `error`, or a wait for it has timed out.
  virtual void note_error(int rank, c10d::ErrorType error) = 0;

  // `rank` has learned that one of its calls has failed, or one of its waits has timed out. So it may give up its
  // operations in flight.
  virtual void note_failure_known(int rank) noexcept = 0;

  // The program has aborted a collective that its rank had called, and to which other ranks have still to come.
  virtual void note_aborted(const RankWork& work) = 0;

  // True if a failure probably keeps the call of `work` from completing. There are two cases. In the first case, one of
  // the ranks in `waits_for` has crashed. In the second case, the work's rank learned of a failure while the call was
  // in flight, and one of the ranks in `waits_for` has learned of a failure, too.
  virtual bool is_left_behind(const RankWork& work, const std::vector<int>& waits_for) const = 0;

  // The work's rank knows that the work has ended, or has ordered its stream after the work. May be called repeatedly.
  virtual void note_known(const RankWork& work) noexcept = 0;

  // The work has just ended: its futures are not marked yet, and its waiters are runnable unless callbacks come first.
  // Not called after closing.
  virtual void on_end(RankWork& work) = 0;

  // For works that an interceptor watches: on_known() when the rank knows of the end, on_released() when no one can
  // query the work any more. Not called after closing.
  virtual void on_known(const RankWork& work) noexcept = 0;
  virtual void on_released(const RankWork& work) noexcept = 0;

  // Called for a watched send or receive that disagrees with its peer's call; see CallInterceptor.
  virtual bool is_unchanged(const RankWork& work) = 0;

  // The work is being destroyed or its rank is ending, and RankWork::asked() was false until then. Not called after
  // closing.
  virtual void on_unasked(const RankWork& work) = 0;

 private:
  const GroupIdentity identity_;
};

}  // namespace rehearse::comm
