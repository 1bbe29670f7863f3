// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include <rehearse_internal/comm/group_identity.h>
#include <rehearse_internal/comm/operation.h>

namespace rehearse::comm {

// Sees each call of each rank before it is matched, and the end of those that pass. Faults and checkers implement it.
class CallInterceptor {
 public:
  enum class Answer {
    pass,
    skip,  // the caller gets a completed work; its group never sees the call
  };

  virtual ~CallInterceptor() = default;

  // Called in the caller's fiber after the call's arguments have been checked. `rank`: in the world. `sequence`: the
  // number that the call will have in its group, as reports show it. May block; if it throws, the caller gets the
  // exception. May set Operation::mark and Operation::trace. The address of `call` is stable until the fabric gets it.
  virtual Answer on_call(Operation& call, const GroupIdentity& group, int rank, std::uint64_t sequence) = 0;

  // Called when `call` is a send or receive that disagrees with the call matched with it. False: the arguments of
  // `call` have changed since it was made, and the interceptor has ended the world for that reason.
  virtual bool is_unchanged(const Operation& /*call*/) { return true; }

  // The call has ended. Nothing reads or writes its tensors any more, unless the call was aborted during its transfer.
  // Called anywhere on the executor's thread.
  virtual void on_complete(const Operation& /*call*/, bool /*succeeded*/) noexcept {}

  // The call's rank knows that the call has ended: a wait() has returned, or isCompleted() or a future has said so. May
  // be called repeatedly.
  virtual void on_known(const Operation& /*call*/) noexcept {}

  // No one can query the call any more. The last notification for `call`; omitted if the world has ended.
  virtual void on_released(const Operation& /*call*/) noexcept {}
};

}  // namespace rehearse::comm
