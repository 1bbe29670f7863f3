// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include <rehearse_internal/comm/call_gate.h>
#include <rehearse_internal/exec/executor.h>
#include <rehearse_internal/fakes/fake_fabric.h>

#include "watched_call.h"

namespace rehearse::sim {

// The calls of one rank whose end it does not know, oldest first.
using CallsOfRank = std::vector<std::unique_ptr<WatchedCall>>;

// Looks at each call of each rank.
class CallChecker {
 public:
  virtual ~CallChecker() = default;

  // The rank makes a call, in its fiber; `before`: those of its calls whose end it does not know. May not return.
  virtual void begin(WatchedCall& call, const CallsOfRank& before) = 0;

  // The bytes of a transfer move now; `call` is one rank's end of it. False: they must not, the world has been ended.
  virtual bool move(const WatchedCall& call) = 0;

  // It does not fit the call that it has met. False: it is not what it was, and the world has been ended for that.
  virtual bool stands(const WatchedCall&) { return true; }

  // The rank knows that the call is over, or the call has failed.
  virtual void forget(const WatchedCall& call) noexcept = 0;
};

// Keeps the calls of a world for its checkers. What it is given outlives it; it outlives the communicators that have it
// as their gate, and the fabric that asks it before moving.
class CallWatch final : public comm::CallGate, public fakes::MoveGate {
 public:
  // `next`: the gate to which calls come first; null: none. `call_sites`: note where each call is made.
  CallWatch(exec::RankExecutor& executor, comm::CallGate* next, bool call_sites);
  ~CallWatch() override;

  void add(CallChecker& checker) { checkers_.push_back(&checker); }
  const CallsOfRank& calls_of(int rank) const { return calls_[static_cast<std::size_t>(rank)]; }

  Answer admit(const comm::Operation& call, const comm::GroupIdentity& group, int rank,
               std::uint64_t sequence) override;
  void ended(const comm::Operation& call, bool succeeded) noexcept override;
  void known(const comm::Operation& call) noexcept override;
  void gone(const comm::Operation& call) noexcept override;
  bool may_move(const comm::Transfer& transfer) override;
  bool stands(const comm::Operation& call) override;

 private:
  WatchedCall* find(const comm::Operation& call) const;
  template <class Which>
  void forget(int rank, const Which& which) noexcept;

  exec::RankExecutor& executor_;
  comm::CallGate* const next_;
  const bool call_sites_;
  std::vector<CallChecker*> checkers_;
  std::vector<CallsOfRank> calls_;                                    // by rank
  std::unordered_map<const comm::Operation*, WatchedCall*> by_call_;  // looked up, never walked
};

}  // namespace rehearse::sim
