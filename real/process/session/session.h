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

// This process's end of a job: tells the coordinator what its rank does, and hears what has met and how all ends. Three
// threads of its own. Thread safe.
//
// Where nothing is heard of the coordinator any more (its process, that of rank 0, is gone) the session ends the world
// itself.
class Session {
 public:
  // `began`: time zero of its clock, of the machine's.
  Session(int rank, int size, c10d::Store& store, VirtualDuration check_timeout, VirtualDuration began);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  // Throws RankAborted once the world ends.
  void require_running() const;

  // Tells the coordinator of a call, and `call` when its peers are there. Does not block.
  void make(const CallMade& made, AwaitedCallPtr call);
  // Blocks until all members have made it. Throws RankAborted. Of groups without this rank: does not block.
  void make(const GroupMade& made, bool is_member);

  // Tells the coordinator that the rank no longer waits in a barrier. Throws RankAborted.
  void give_up(const BarrierGivenUp& given_up);

  // Waits until `over()`, which is looked at under the lock, or the world ends, for `most` at most. Gives `over()`.
  bool wait(const std::function<bool()>& over, std::optional<VirtualDuration> most = {});
  // Changes what waits look at.
  void change(const std::function<void()>& change);

  WorkBelow& below() noexcept { return below_; }

  // `work` runs on the thread for what is carried out, in order.
  void carry_out(std::function<void()> work) { carrier_.give(std::move(work)); }

  // Tells the coordinator that the rank has failed, of a process that ends here.
  void fail(const std::string& what);

  // While it lives, the caller may be in a wait that the session does not know: `end_it` is called, on another thread,
  // when the world ends, or at once where it has.
  class ForeignWait {
   public:
    ForeignWait(Session& session, std::function<void()> end_it);
    ForeignWait(const ForeignWait&) = delete;
    ForeignWait& operator=(const ForeignWait&) = delete;
    ~ForeignWait();

   private:
    Session& session_;
    std::list<std::function<void()>>::iterator place_;
  };

  // The rank's body is over: blocks until all ranks have ended.
  JobOutcome end(const RankEnded& ended);

  // Ends its threads; rank 0's waits until the others have heard the last word. The destructor does it, too.
  void close();
  // After close(): whether a thread waits for a store that stands still, and may use this and the store at any time.
  bool stands_still() const noexcept { return stands_still_; }

 private:
  void tell(const RankMessage& told);
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
  MessageQueue incoming_;  // of the listening thread
  const c10::intrusive_ptr<c10d::Store> store_;
  std::atomic<bool> told_interrupt_{false};
  WorkBelow below_;

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  OpenCalls open_;
  std::map<std::string, bool> groups_;  // of which all members are there
  std::optional<std::string> stopped_;
  std::list<std::function<void()>> foreign_waits_;
  std::optional<JobOutcome> job_outcome_;
  std::optional<RankEnded> ended_;
  VirtualTime over_since_{};
  Silence silence_;
  bool stands_still_ = false;  // after close()

  std::unique_ptr<CoordinatorService> coordinator_;
  ThreadEnds ends_;
  WorkThread carrier_;
  std::jthread listener_, watch_;  // last: they end first
};

}  // namespace rehearse::real
