// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory_resource>
#include <optional>
#include <vector>

#include <rehearse_internal/comm/call_interceptor.h>
#include <rehearse_internal/exec/executor.h>
#include <rehearse_internal/fakes/fake_fabric.h>

#include "buffer_index.h"
#include "watched_call.h"

namespace rehearse::sim {

// A buffer of a new call has a byte in common with one of an earlier call, and at least one of the two is written. The
// earlier one's rank, which may be another one, does not know that its call is over.
struct SharedBytes {
  WatchedBuffer* buffer;
  WatchedBuffer* earlier;
};

// Looks at each call of each rank.
class CallChecker {
 public:
  virtual ~CallChecker() = default;

  // The rank makes a call, in its fiber. `shared`: by buffer of the call, then oldest first. May not return.
  virtual void begin(WatchedCall& call, const std::vector<SharedBytes>& shared) = 0;

  // The bytes of a transfer move now; `call` is one rank's end of it. False: they must not, the world has been ended.
  virtual bool move(const WatchedCall&) { return true; }

  // The call does not match its peers. False: this call's arguments were modified after the call. That is reported
  // already, and has ended the world.
  virtual bool is_unchanged(const WatchedCall&) { return true; }

  // The bytes have moved, and the rank has still to learn of it.
  virtual void arrive(WatchedCall&) noexcept {}

  // The rank learns, just now, that the call is over.
  virtual void learn(const WatchedCall&) noexcept {}

  // Nobody looks at the call any more: its rank knows that it is over, it has failed, or its work was dropped long ago.
  virtual void forget(const WatchedCall&) noexcept {}
};

// Keeps the calls of a world for its checkers. What it is given outlives it; it outlives the communicators that have it
// as their interceptor, and the fabric that asks it before moving.
class CallWatch final : public comm::CallInterceptor, public fakes::MoveInterceptor {
 public:
  // `next`: the interceptor to which calls come first; null: none. `call_sites`: note where each call is made.
  CallWatch(exec::RankExecutor& executor, comm::CallInterceptor* next, bool call_sites);
  ~CallWatch() override;

  void add(CallChecker& checker) { checkers_.push_back(&checker); }

  // Does the rank know the end of all its calls?
  bool knows_all(int rank) const noexcept { return of(rank).calls.empty(); }

  // The buffers of all ranks' calls whose end their ranks do not know.
  const BufferIndex& buffers() const noexcept { return buffers_; }

  Answer on_call(comm::Operation& call, const comm::GroupIdentity& group, int rank, std::uint64_t sequence) override;
  void on_complete(const comm::Operation& call, bool succeeded) noexcept override;
  void on_known(const comm::Operation& call) noexcept override;
  void on_released(const comm::Operation& call) noexcept override;
  bool may_move(const comm::Transfer& transfer) override;
  bool is_unchanged(const comm::Operation& call) override;

 private:
  // In the order in which they were made.
  using Ended = boost::intrusive::set<WatchedCall, boost::intrusive::base_hook<AmongEnded>>;
  using Dropped = boost::intrusive::set<WatchedCall, boost::intrusive::base_hook<AmongDropped>>;

  // The calls of a group that have ended.
  struct OfGroup {
    Ended collectives;
    Ended messages;

    Ended& of(const WatchedCall& call) noexcept { return call.is_message ? messages : collectives; }
  };

  // The calls of one rank whose end it does not know.
  struct OfRank {
    boost::intrusive::list<WatchedCall> calls;
    std::map<std::uint32_t, OfGroup> groups;
    Dropped dropped;  // they have ended, and nobody can ask about them
  };

  const OfRank& of(int rank) const noexcept { return ranks_[static_cast<std::size_t>(rank)]; }
  OfRank& of(int rank) noexcept { return ranks_[static_cast<std::size_t>(rank)]; }
  const comm::GroupIdentity& kept(const comm::GroupIdentity& group);
  static WatchedCall* find(const comm::Operation& call);
  std::vector<SharedBytes> shared_by(WatchedCall& call);
  void enter(WatchedCall& call, const std::vector<SharedBytes>& shared);
  void note_dropped(WatchedCall& call) noexcept;
  void learn(WatchedCall& call) noexcept;
  void learn_until(std::uint64_t number, Ended& calls) noexcept;
  void forget(WatchedCall& call) noexcept;
  void destroy(WatchedCall& call) noexcept;

  exec::RankExecutor& executor_;
  comm::CallInterceptor* const next_;
  const bool call_sites_;
  std::vector<CallChecker*> checkers_;
  std::pmr::unsynchronized_pool_resource memory_;  // of the calls: many small pieces, freed at once in the end
  std::vector<OfRank> ranks_;
  std::uint64_t calls_made_ = 0;
  BufferIndex buffers_;
  std::deque<std::optional<comm::GroupIdentity>> groups_;  // by number; they stay where they are
};

}  // namespace rehearse::sim
