// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include <rehearse_internal/comm/group_identity.h>
#include <rehearse_internal/comm/operation.h>

namespace rehearse::comm {

// Asked about each call of each rank before it is matched, and told what becomes of those that pass: where faults and
// checkers come in. See CommunicatorOptions::interceptor.
class CallInterceptor {
 public:
  enum class Answer {
    pass,
    skip,  // the caller gets a work that is complete; its group never hears of the call
  };

  virtual ~CallInterceptor() = default;

  // In the caller's fiber, when the call has been checked. `rank`: of the world; `sequence`: the number that the call
  // will have in its group, as reports show it. It may block, and what it throws the caller meets. It may set
  // Operation::mark and Operation::trace. `call` stays where it is until the fabric has been given it.
  virtual Answer on_call(Operation& call, const GroupIdentity& group, int rank, std::uint64_t sequence) = 0;

  // Two calls that meet do not fit. False: `call` is not any more what it was when it was made, and the interceptor has
  // ended the world for that.
  virtual bool is_unchanged(const Operation& /*call*/) { return true; }

  // The call is over: nothing reads or writes its tensors any more. Anywhere on the executor's thread.
  virtual void on_complete(const Operation& /*call*/, bool /*succeeded*/) noexcept {}

  // Its rank knows that it is over: a wait() has come back, or isCompleted() or a future has said so. Perhaps again.
  virtual void on_known(const Operation& /*call*/) noexcept {}

  // Nobody can ask about it any more. The last that is said of `call`; not said when the world has ended.
  virtual void on_released(const Operation& /*call*/) noexcept {}
};

}  // namespace rehearse::comm
