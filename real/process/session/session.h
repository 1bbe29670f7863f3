// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <c10/util/intrusive_ptr.h>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <rehearse/exec/time.h>

#include "process/check/messages.h"
#include "process/session/coordinator_service.h"
#include "process/session/message_queue.h"
#include "process/session/silence.h"
#include "process/session/thread_ends.h"

namespace rehearse::real {

// A call that waits for its peers.
class AwaitedCall : public c10::intrusive_ptr_target {
 public:
  // The peers are there. Runs on the session's thread for carrying out calls, in the order in which the coordinator let
  // these calls go.
  virtual void go(const Go& go) = 0;
  // The call is a monitoredBarrier() that rank 0 has given up.
  virtual void fail(const BarrierFailed& failed) = 0;
  // The world ends before the peers come.
  virtual void stop(const std::exception_ptr& why) = 0;
};
using AwaitedCallPtr = c10::intrusive_ptr<AwaitedCall>;

// A rank's calls about which the coordinator has not decided yet.
class OpenCalls {
 public:
  void add(Matched what, const CallMade& made, AwaitedCallPtr call) {
    open_.emplace(Key{what, made.group, made.sequence}, std::move(call));
  }

  // Null: this call does not wait, because it has ended with the world, or because the coordinator's message is about a
  // group (Matched::group).
  AwaitedCallPtr take(Matched what, const std::string& group, std::uint64_t sequence) {
    const auto found = open_.find(Key{what, group, sequence});
    if (found == open_.end()) return nullptr;
    auto call = std::move(found->second);
    open_.erase(found);
    return call;
  }

  std::vector<AwaitedCallPtr> take_all() {
    std::vector<AwaitedCallPtr> all;
    for (auto& [key, call] : open_) all.push_back(std::move(call));
    open_.clear();
    return all;
  }

 private:
  using Key = std::tuple<Matched, std::string, std::uint64_t>;

  std::map<Key, AwaitedCallPtr> open_;
};

// A thread that runs the given work, in order. Thread safe.
class WorkThread {
 public:
  WorkThread();

  // Does not block.
  void give(std::function<void()> work);

  // Ends the thread after it has done the work that it was given before. The destructor does the same.
  void close();

 private:
  void serve(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::function<void()>> waiting_;
  std::jthread thread_;  // last member, so that its destructor runs first
};

// The state of a rank's calls in the back ends below Rehearse's: c10d's own gloo and NCCL. Thread safe.
class WorkBelow {
 public:
  // begin(): a call was passed on. end(): it has ended.
  void begin() noexcept { ++under_way_; }
  void end() noexcept { --under_way_; }
  bool any_under_way() const noexcept { return under_way_ > 0; }

  // Throws the error of a call to a back end below, and remembers that such a call has failed.
  [[noreturn]] void throw_failure(const std::exception_ptr& error) {
    has_failed_ = true;
    std::rethrow_exception(error);
  }
  bool has_failed() const noexcept { return has_failed_; }

 private:
  std::atomic<int> under_way_{0};
  std::atomic<bool> has_failed_{false};
};

// The connection of this process to the job's coordinator: tells it what this process's rank does, and learns which
// calls are matched and how the job ends. Has three threads of its own; in rank 0's process, the coordinator has two
// more. Thread safe.
//
// If the coordinator sends nothing any more, because rank 0's process is gone, the session itself ends the world.
class Session {
 public:
  // `began`: the start of the run, by the machine's clock. The session counts its time from there.
  Session(int rank, int size, c10d::Store& store, VirtualDuration check_timeout, VirtualDuration began);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  // Throws RankAborted once the world ends.
  void require_running() const;

  // Tells the coordinator about a call, and tells `call` when its peers are there. Does not block. Throws RankAborted
  // once the world ends.
  void make(const CallMade& made, AwaitedCallPtr call);
  // Tells the coordinator about a group, and blocks until all members have made it. If this rank is no member, does not
  // block. Throws RankAborted.
  void make(const GroupMade& made, bool is_member);

  // Tells the coordinator that the rank no longer waits in a barrier. Throws RankAborted.
  void give_up(const BarrierGivenUp& given_up);

  // Waits until `over()` is true, the world ends, or `most` has passed. Calls `over()` under the lock, and returns the
  // value of the last call.
  bool wait(const std::function<bool()>& over, std::optional<VirtualDuration> most = {});
  // Changes, under the lock, the state that waiting threads check.
  void change(const std::function<void()>& change);

  WorkBelow& below() noexcept { return below_; }

  // Runs `work` on the thread for carrying out calls, in order.
  void carry_out(std::function<void()> work) { transport_.give(std::move(work)); }

  // Tells the coordinator that the rank has failed, because its process ends here.
  void fail(const std::string& what);

  // Make a ForeignWait before you wait by other means than wait(), for example in gloo. When the world ends, the
  // session calls `end_it` on another thread, under the lock. If the world has already ended, the constructor calls
  // `end_it`.
  class ForeignWait {
   public:
    ForeignWait(Session& session, std::function<void()> end_it);
    ForeignWait(const ForeignWait&) = delete;
    ForeignWait& operator=(const ForeignWait&) = delete;
    ~ForeignWait();

   private:
    Session& session_;
    std::list<std::function<void()>>::iterator position_;
  };

  // Call this when the rank's body is over. Blocks until the job's outcome is known.
  JobOutcome end(const RankEnded& ended);

  // Ends the session's threads. In rank 0's process, it then waits until the other ranks have read the last message,
  // but at most for the check timeout. After that wait, it ends the coordinator. The destructor calls close(), too.
  void close();
  // Use this after close(). True if a thread waits for a store that does not respond, and may still use this object and
  // the store.
  bool stands_still() const noexcept { return stands_still_; }

 private:
  void tell(const RankMessage& message);
  void tell_interrupt();
  void listen(const std::stop_token& stop);
  void handle(const ToRank& message);
  void handle_one(const StillAlive&);
  void handle_one(const Go& go);
  void handle_one(const BarrierFailed& failed);
  void handle_one(const Stop& stop);
  void handle_one(const Over& over);
  void store_is_gone(const c10::Error& error);
  void coordinator_is_lost(const std::string& why);
  void give_up(int culprit, FailureKind kind, const std::string& what);
  void watch(const std::stop_token& stop);
  void end_of_body(std::unique_lock<std::mutex>& lock);
  void tell_self();
  void say_good_bye();
  VirtualTime now() const noexcept;

  const int rank_;
  const int size_;
  const VirtualDuration check_timeout_;
  const VirtualDuration began_;
  std::mutex sending_;
  MessageQueue outgoing_;  // guarded by sending_
  MessageQueue incoming_;  // for the listening thread
  const c10::intrusive_ptr<c10d::Store> store_;
  std::atomic<bool> sent_interrupt_{false};
  WorkBelow below_;

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  OpenCalls open_;
  std::map<std::string, bool> groups_;  // groups whose members are all there
  std::optional<std::string> stopped_;
  std::list<std::function<void()>> foreign_waits_;
  std::optional<JobOutcome> job_outcome_;
  std::optional<RankEnded> ended_;
  VirtualTime over_since_{};
  Silence silence_;
  bool stands_still_ = false;  // set by close()

  std::unique_ptr<CoordinatorService> coordinator_;
  ThreadEnds ends_;
  WorkThread transport_;
  std::jthread listener_, watch_;  // last members, so that their destructors run first
};

}  // namespace rehearse::real
