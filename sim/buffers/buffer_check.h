// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include <rehearse_internal/operators/seen_operators.h>

#include "call_watch.h"
#include "finding.h"
#include "operator_access.h"
#include "undefined_memory.h"

namespace rehearse::sim {

// Checks buffers in flight. From a call until its rank knows that the call has ended, neither the rank nor any other
// code may write the call's inputs, read or write its outputs, or give its tensors other memory. In addition, reduce()
// leaves its tensor undefined on ranks other than the root; such a rank must write to the tensor before it reads the
// tensor. The check sees the operators of the rank's fibers, and learns from their schemas what they read and write. To
// notice writes through pointers, it compares hashes of the bytes when they move, and again when the rank learns that
// the call has ended. The constructor's arguments must outlive this object.
class BufferCheck final : public CallChecker {
 public:
  BufferCheck(exec::RankExecutor& executor, const CallWatch& calls);

  // Returns a watcher for the operators of one fiber of the rank. The watcher must not outlive this object.
  std::unique_ptr<operators::OperatorWatcher> watch_fiber_of(int rank);

  void begin(WatchedCall& call, const std::vector<SharedBytes>& shared) override;
  bool move(const WatchedCall& call) override;
  bool is_unchanged(const WatchedCall& call) override;
  void arrive(WatchedCall& call) noexcept override;
  void learn(const WatchedCall& call) noexcept override;

  // See Finding::blamed().
  const std::vector<int>& blamed() const noexcept { return finding_.blamed(); }

 private:
  class OfFiber;

  void look_at_memory(const WatchedBuffer& buffer);
  void look_at_undefined(const WatchedCall& call);
  void look_at_outputs(const WatchedCall& call);

  const CallWatch& calls_;
  Finding finding_;
  std::vector<UndefinedMemory> undefined_;                                   // by rank
  std::unordered_map<const c10::FunctionSchema*, OperatorAccess> accesses_;  // never iterated
};

}  // namespace rehearse::sim
