// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <rehearse_internal/operators/seen_operators.h>

#include "call_watch.h"
#include "finding.h"
#include "operator_access.h"

namespace rehearse::sim {

// Buffers in flight: from a call until its rank knows of its end nobody else writes its inputs, reads or writes its
// outputs, or gives its tensors other memory. And nobody reads what reduce() leaves on other ranks than the root,
// before the rank has written it. Operators of the rank's own fiber are seen by what their schemas say of their
// arguments; writes by pointers show in the bytes that move. What is given outlives it.
class BufferCheck final : public CallChecker {
 public:
  BufferCheck(exec::RankExecutor& executor, const CallWatch& calls);
  ~BufferCheck() override;

  // Of the rank's main fiber.
  operators::OperatorWatcher& operators_of(int rank) noexcept;

  void begin(WatchedCall& call, const CallsOfRank& before) override;
  bool move(const WatchedCall& call) override;
  bool stands(const WatchedCall& call) override;
  void forget(const WatchedCall&) noexcept override {}

 private:
  class OfRank;

  const OperatorAccess& access_of(const c10::OperatorHandle& op);
  void look_at(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments, const CallsOfRank& calls);
  void look_at(const at::Tensor& tensor, OperatorAccess::Of access, const c10::OperatorHandle& op,
               const CallsOfRank& calls);
  void look_at_spoilt(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments, OfRank& rank);
  void look_at_spoilt(const WatchedCall& call, OfRank& rank);
  void look_at_outputs(const WatchedCall& call);
  void look_for_exchanged(std::string_view op, const CallsOfRank& calls);

  Finding finding_;
  std::vector<std::unique_ptr<OfRank>> ranks_;
  std::unordered_map<const c10::FunctionSchema*, OperatorAccess> accesses_;  // looked up, never walked
};

}  // namespace rehearse::sim
