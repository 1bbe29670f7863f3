// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include <rehearse_internal/operators/seen_operators.h>

#include "call_watch.h"
#include "finding.h"
#include "operator_access.h"
#include "spoilt_memory.h"

namespace rehearse::sim {

// Buffers in flight: from a call until its rank knows of its end nobody else writes its inputs, reads or writes its
// outputs, or gives its tensors other memory. And nobody reads what reduce() leaves on other ranks than the root,
// before the rank has written it. Operators of the rank's own fiber are seen by what their schemas say of
// their arguments; writes by pointers show in the bytes that move. What is given outlives it.
class BufferCheck final : public CallChecker {
 public:
  BufferCheck(exec::RankExecutor& executor, const CallWatch& calls);

  // Looks at the operators of one fiber of the rank. This outlives it.
  std::unique_ptr<operators::OperatorWatcher> watch_fiber_of(int rank);

  void begin(WatchedCall& call, const std::vector<SharedBytes>& shared) override;
  bool move(const WatchedCall& call) override;
  bool is_unchanged(const WatchedCall& call) override;
  void arrive(WatchedCall& call) noexcept override;
  void learn(const WatchedCall& call) noexcept override;

 private:
  class OfFiber;

  void look_at_memory(const WatchedBuffer& buffer);
  void look_at_spoilt(const WatchedCall& call);
  void look_at_outputs(const WatchedCall& call);

  const CallWatch& calls_;
  Finding finding_;
  std::vector<SpoiltMemory> spoilt_;                                         // by rank
  std::unordered_map<const c10::FunctionSchema*, OperatorAccess> accesses_;  // looked up, never walked
};

}  // namespace rehearse::sim
