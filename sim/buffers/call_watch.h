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

// Two buffers that have a byte in common: `buffer` of a new call, and `earlier` of an earlier call. The calls write at
// least one of the two. The earlier call's rank, which may be another rank, does not know yet that its call has ended.
struct SharedBytes {
  WatchedBuffer* buffer;
  WatchedBuffer* earlier;
};

// Checks each call of each rank.
class CallChecker {
 public:
  virtual ~CallChecker() = default;

  // The rank makes a call. Runs in the rank's fiber, and may throw to end the rank. `shared` is sorted by buffer of the
  // call, then oldest first.
  virtual void begin(WatchedCall& call, const std::vector<SharedBytes>& shared) = 0;

  // The bytes of a transfer are about to move; the argument is one rank's call. False: they must not move, because the
  // checker has ended the world.
  virtual bool move(const WatchedCall&) { return true; }

  // The call is a send or receive that disagrees with the call matched with it. False: this call's arguments changed
  // after the call was made. The checker has reported that and ended the world.
  virtual bool is_unchanged(const WatchedCall&) { return true; }

  // The bytes have moved; the rank does not know it yet.
  virtual void arrive(WatchedCall&) noexcept {}

  // The rank learns at this moment that the call is over.
  virtual void learn(const WatchedCall&) noexcept {}

  // The watch drops the call: the rank knows that the call is over, the call has failed, or the rank dropped its Work
  // long ago.
  virtual void forget(const WatchedCall&) noexcept {}
};

// Keeps the calls of a world for its checkers. The constructor's arguments must outlive this object. This object must
// outlive the communicators that have it as their interceptor, and all transfers of the fabric that asks it before
// moving bytes.
class CallWatch final : public comm::CallInterceptor, public fakes::MoveInterceptor {
 public:
  // `call_sites`: record where each call is made.
  CallWatch(exec::RankExecutor& executor, bool call_sites);
  ~CallWatch() override;

  void add(CallChecker& checker) { checkers_.push_back(&checker); }

  // True if the rank knows the end of all its calls, apart from those whose Work it dropped long ago.
  bool knows_all(int rank) const noexcept { return of(rank).calls.empty(); }

  // The buffers of the calls of all ranks. A buffer stays here at most until the rank that made the call knows that the
  // call has ended. It may leave earlier: if its memory is gone, if a buffer of a later call covers it, or if the
  // watch drops the call (CallChecker::forget()).
  const BufferIndex& buffers() const noexcept { return buffers_; }

  Answer on_call(comm::Operation& call, const comm::GroupIdentity& group, int rank, std::uint64_t sequence) override;
  void on_complete(const comm::Operation& call, bool succeeded) noexcept override;
  void on_known(const comm::Operation& call) noexcept override;
  void on_released(const comm::Operation& call) noexcept override;
  bool may_move(const comm::Transfer& transfer) override;
  bool is_unchanged(const comm::Operation& call) override;

 private:
  // Sorted by the order in which the calls were made.
  using Ended = boost::intrusive::set<WatchedCall, boost::intrusive::base_hook<AmongEnded>>;
  using Dropped = boost::intrusive::set<WatchedCall, boost::intrusive::base_hook<AmongDropped>>;

  // The ended calls of a group.
  struct OfGroup {
    Ended collectives;
    Ended messages;

    Ended& of(const WatchedCall& call) noexcept { return call.is_message ? messages : collectives; }
  };

  // The calls of one rank whose end the rank does not know.
  struct OfRank {
    boost::intrusive::list<WatchedCall> calls;
    std::map<std::uint32_t, OfGroup> groups;
    Dropped dropped;  // ended calls whose Work is gone, so that nobody can ask about them
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
  const bool call_sites_;
  std::vector<CallChecker*> checkers_;
  std::pmr::unsynchronized_pool_resource memory_;  // holds the calls: many small pieces, freed at once in the end
  std::vector<OfRank> ranks_;
  std::uint64_t calls_made_ = 0;
  BufferIndex buffers_;
  std::deque<std::optional<comm::GroupIdentity>> groups_;  // by id; a deque, so that elements keep their addresses
};

}  // namespace rehearse::sim
