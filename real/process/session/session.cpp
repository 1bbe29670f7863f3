// SPDX-License-Identifier: BSD-3-Clause
#include "session.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <utility>

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <rehearse/job/verdict.h>
#include <rehearse_internal/archive/archive.h>
#include <rehearse_internal/exec/failure.h>
#include <rehearse_internal/exec/interrupt.h>
#include <rehearse_internal/exec/machine_time.h>
#include <rehearse_internal/job/rank_note.h>

#include "comm/agree/wording.h"

namespace rehearse::real {

WorkThread::WorkThread() : thread_([this](const std::stop_token& stop) { serve(stop); }) {}

void WorkThread::give(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(work));
  }
  changed_.notify_one();
}

void WorkThread::close() { thread_ = {}; }

void WorkThread::serve(const std::stop_token& stop) {
  for (;;) {
    std::function<void()> work;
    {
      std::unique_lock lock(mutex_);
      if (!changed_.wait(lock, stop, [this] { return !waiting_.empty(); })) return;
      work = std::move(waiting_.front());
      waiting_.pop_front();
    }
    work();
  }
}

VirtualTime Session::now() const noexcept { return VirtualTime{exec::machine_time() - began_}; }

Session::Session(int rank, int size, c10d::Store& store, VirtualDuration check_timeout, VirtualDuration began)
    : rank_(rank),
      size_(size),
      check_timeout_(check_timeout),
      began_(began),
      outgoing_(store),
      incoming_(store),
      store_(store.clone()),
      silence_(heartbeat_interval(check_timeout), check_timeout) {
  if (rank == 0) coordinator_ = std::make_unique<CoordinatorService>(store, size, check_timeout, began);
  listener_ = std::jthread([this](const std::stop_token& stop) { listen(stop); });
  watch_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
  tell(StillAlive{});
}

void Session::require_running() const {
  const std::lock_guard lock(mutex_);
  if (stopped_) throw RankAborted(*stopped_);
}

void Session::tell(const RankMessage& message) {
  try {
    const std::lock_guard lock(sending_);
    outgoing_.send(MessageQueue::to_coordinator(), archive::packed(FromRank{rank_, message}));
  } catch (const c10::DistError& error) {
    store_is_gone(error);
  }
}

// Tells the coordinator, once, that an interrupt was requested. The rank calls this while it waits, and the listener
// after each message.
void Session::tell_interrupt() {
  if (exec::interrupt_requested() && !sent_interrupt_.exchange(true)) tell(Interrupted{});
}

void Session::fail(const std::string& what) { tell(RankEnded{exec::RankEnd::failed, FailureKind::plain, what, now()}); }

void Session::make(const CallMade& made, AwaitedCallPtr call) {
  const auto what = comm::is_point_to_point(made.call.type) ? Matched::point_to_point : Matched::collective;
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) throw RankAborted(*stopped_);
    open_.add(what, made, std::move(call));
  }
  tell(made);
}

void Session::make(const GroupMade& made, bool is_member) {
  require_running();
  tell(made);
  if (!is_member) return;
  const RankNote::Wait noted(made.call == "new_group" ? comm::new_group_title(made.number) : made.call);
  if (!wait([&] { return groups_.contains(made.key); })) require_running();
}

void Session::give_up(const BarrierGivenUp& given_up) {
  require_running();
  tell(given_up);
}

bool Session::wait(const std::function<bool()>& over, std::optional<VirtualDuration> most) {
  constexpr VirtualDuration kLook = std::chrono::milliseconds(100);  // because an interrupt wakes nobody
  const auto until = most ? later(now(), *most) : VirtualTime::max();
  std::unique_lock lock(mutex_);
  const auto ends = [&] { return over() || stopped_ || now() >= until; };
  while (!ends()) {
    changed_.wait_for(lock, most ? std::min(kLook, until - now()) : kLook, ends);
    if (!exec::interrupt_requested() || sent_interrupt_) continue;
    lock.unlock();
    tell_interrupt();
    lock.lock();
  }
  return over();
}

void Session::change(const std::function<void()>& change) {
  {
    const std::lock_guard lock(mutex_);
    change();
  }
  changed_.notify_all();
}

Session::ForeignWait::ForeignWait(Session& session, std::function<void()> end_it) : session_(session) {
  const std::lock_guard lock(session.mutex_);
  if (session.stopped_) end_it();
  position_ = session.foreign_waits_.insert(session.foreign_waits_.end(), std::move(end_it));
}

Session::ForeignWait::~ForeignWait() {
  const std::lock_guard lock(session_.mutex_);
  session_.foreign_waits_.erase(position_);
}

void Session::listen(const std::stop_token& stop) {
  try {
    bool over = false;
    while (!over && !stop.stop_requested()) {
      const auto message = incoming_.receive(MessageQueue::to_rank(rank_));
      change([this] { silence_.heard(); });
      handle(archive::unpacked<ToRank>(message, "a message between ranks"));
      tell_interrupt();
      const std::lock_guard lock(mutex_);
      over = job_outcome_.has_value();
    }
  } catch (const c10::DistError& error) {
    store_is_gone(error);
  } catch (const std::exception& error) {
    give_up(rank_, FailureKind::plain, fmt::format("it cannot read a message from rank 0: {}", error.what()));
  }
  ends_.note();
}

void Session::handle(const ToRank& message) {
  std::visit([this](const auto& each) { handle_one(each); }, message);
}

// This rank answers the coordinator's heartbeat with its own.
void Session::handle_one(const StillAlive&) {
  incoming_.send(MessageQueue::to_coordinator(), archive::packed(FromRank{rank_, StillAlive{}}));
}

void Session::handle_one(const Go& go) {
  change([&] {
    if (go.what == Matched::group) groups_[go.group] = true;
    const auto call = open_.take(go.what, go.group, go.sequence);
    if (call != nullptr) carry_out([call, go] { call->go(go); });
  });
}

void Session::handle_one(const BarrierFailed& failed) {
  AwaitedCallPtr call;
  change([&] { call = open_.take(Matched::collective, failed.group, failed.sequence); });
  if (call != nullptr) call->fail(failed);
}

void Session::handle_one(const Stop& stop) {
  std::vector<AwaitedCallPtr> open;
  change([&] {
    if (stopped_) return;
    rank_note().world_ends(stop.waits_on, stop.waits_for);
    stopped_ = stop.why;
    open = open_.take_all();
    for (const auto& end_it : foreign_waits_) end_it();
  });
  const auto why = std::make_exception_ptr(RankAborted(stop.why));
  for (const auto& call : open) call->stop(why);
}

void Session::handle_one(const Over& over) {
  change([&] {
    if (!job_outcome_) job_outcome_ = over.job_outcome;
    over_since_ = now();
  });
  try {
    store_->set(fmt::format("bye/{}", rank_), "bye");
  } catch (const c10::Error&) {  // no store any more, so nobody waits for this
  }
}

}  // namespace rehearse::real
