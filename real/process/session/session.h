// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include <c10/util/intrusive_ptr.h>
#include <rehearse/exec/time.h>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "process/check/messages.h"
#include "process/session/coordinator_service.h"
#include "process/session/message_queue.h"
#include "process/session/open_calls.h"
#include "process/session/silence.h"
#include "process/session/thread_ends.h"
#include "process/session/work_below.h"
#include "process/session/work_thread.h"

namespace rehearse::real {

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
