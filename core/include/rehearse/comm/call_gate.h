// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include <rehearse/comm/group_identity.h>
#include <rehearse/comm/operation.h>

namespace rehearse::comm {

// Asked about each call of each rank before it is matched: where faults come in. See CommunicatorOptions::gate.
class CallGate {
 public:
  enum class Answer {
    pass,
    skip,  // the caller gets a work that is complete; its group never hears of the call
  };

  virtual ~CallGate() = default;

  // In the caller's fiber, when the call has been checked. `rank`: of the world; `sequence`: the number that the call
  // will have in its group, as reports show it. It may block, and what it throws the caller meets. `call` stays where
  // it is until the fabric has been given it.
  virtual Answer admit(const Operation& call, const GroupIdentity& group, int rank, std::uint64_t sequence) = 0;
};

}  // namespace rehearse::comm
