// SPDX-License-Identifier: BSD-3-Clause
#include "group_state.h"

#include <algorithm>
#include <exception>
#include <utility>

#include <c10/util/ScopeExit.h>
#include <fmt/format.h>

#include <rehearse/comm/errors.h>
#include <rehearse_internal/comm/call_interceptor.h>
#include <rehearse_internal/comm/connection_text.h>
#include <rehearse_internal/exec/this_rank.h>

#include "comm/call/fingerprint.h"
#include "comm/work/work_observer.h"
#include "group_world.h"

namespace rehearse::comm {
namespace {

class HooksObserver final : public exec::Observer {
 public:
  HooksObserver(const GroupState& group, const std::size_t& to_run) : group_(group), to_run_(to_run) {}

 private:
  exec::Wait describe() const override {
    return {fmt::format("waitForPendingWorks on group \"{}\" ({} completion hooks have yet to run)",
                        group_.identity().name, to_run_)};
  }

  const GroupState& group_;
  const std::size_t& to_run_;
};

}  // namespace

void GroupMember::note(c10d::ErrorType error) noexcept {
  if (error_ == c10d::ErrorType::SUCCESS) error_ = error;
}

void GroupMember::abort() {
  if (refusal_ == nullptr) refusal_ = "aborted";
  note(c10d::ErrorType::COMM_ERROR);
  for (const auto& work : group_.in_flight(rank_)) work->cancel();
  if (!group_.closed()) group_.world().services.fabric.abort(group_.identity(), rank_);
}

void GroupMember::shut_down() {
  if (refusal_ != nullptr) return;
  if (!group_.closed()) wait_for_pending_works();
  refusal_ = "shut down";
}

void GroupMember::check_open() const {
  if (refusal_ == nullptr) return;
  const int rank = group_.identity().global_rank(rank_);
  throw CommError(fmt::format("rank {} has {} the process group \"{}\"", rank, refusal_, group_.identity().name),
                  group_.identity().name, 0, {rank});
}

void GroupMember::wait_for_pending_works() {
  for (Works works = group_.in_flight(rank_); !works.empty(); works = group_.in_flight(rank_)) {
    try {
      for (const auto& work : works) work->wait_until(RankWork::Until::done, ::kNoTimeout, WorkObserver(*work));
    } catch (const TimeoutError&) {
      throw;
    } catch (const CommError&) {
      // The work has failed, so it is no longer pending.
    }
  }
  group_.note_all_known(rank_);
  const HooksObserver observer(group_, hooks_to_run_);
  while (hooks_to_run_ > 0) hooks_done_.wait(observer);
}

void GroupMember::completed(const RankWork& work) {
  if (hook_ == nullptr) return;
  ++hooks_to_run_;
  auto group = c10::intrusive_ptr<GroupState>::reclaim_copy(&group_);
  group_.executor().post(group_.identity().global_rank(rank_),
                         [this, group, info = work.record().info(work.operation.type, work.getSequencenumber())] {
                           const auto count_down = c10::make_scope_exit([this]() noexcept {
                             if (--hooks_to_run_ == 0) hooks_done_.notify_all();
                           });
                           hook_(info);
                         });
}

GroupState::GroupState(GroupWorld& world, GroupIdentity identity)
    : WorkOwner(std::move(identity)),
      world_(&world),
      known_(this->identity().ranks.size()),
      recorder_(this->identity(), world.log, world.services.clock, world.options.call_sites),
      collectives_({this->identity(), recorder_, world.services}),
      point_to_point_({this->identity(), recorder_, world.services}, world.options.buffered_sends) {}

GroupState::~GroupState() = default;

GroupWorld& GroupState::world() const {
  if (world_ == nullptr) {
    const auto& name = identity().name;
    throw CommError(fmt::format("the world of group \"{}\" is over", name), name, 0, {});
  }
  return *world_;
}

exec::RankExecutor& GroupState::executor() const { return world().services.executor; }

void GroupState::check_caller(int rank) const {
  world();
  const int owner = identity().global_rank(rank);
  const int caller = exec::this_rank::rank();
  if (caller != owner) {
    throw CommError(fmt::format("rank {} used the process group \"{}\" of rank {}: each rank must use its own", caller,
                                identity().name, owner),
                    identity().name, 0, {caller});
  }
}

void GroupState::check(RankWork& work) const {
  check_caller(work.rank());
  if (!members_.empty()) {
    const auto member = members_.find(work.rank());
    if (member != members_.end()) member->second.check_open();
  }
  const auto& services = world().services;
  if (!services.executor.ending()) services.fabric.prepare(work.operation, identity(), work.rank());
}

void GroupState::submit(c10::intrusive_ptr<RankWork> work) {
  check(*work);
  GroupWorld& world = this->world();
  const int owner = work->global_rank();
  world.note_work(owner, *work);
  if (world.services.executor.ending()) return;
  note_use(*work);
  auto& call = work->operation;
  const auto label_hash = world.payloads.note_in(call, owner, exec::this_rank::thread_of_rank());
  if (!world.options.interceptors.empty() && !admitted(*work)) return work->complete(world.services.now());
  work->fingerprint = agreement_hash(call, label_hash);
  work->signature = signature_hash(call, work->fingerprint);
  if (is_point_to_point(call.type)) {
    point_to_point_.join(std::move(work));
  } else {
    collectives_.join(std::move(work));
  }
}

void GroupState::note_use(RankWork& work) {
  const int owner = work.global_rank();
  if (!timed_out_.empty()) [[unlikely]] {
    const auto found = timed_out_.find(work.rank());
    if (found != timed_out_.end()) world_->habits.went_on(owner, identity().name, found->second);
  }
  if (is_point_to_point(work.operation.type)) return;
  work.set_thread(exec::this_rank::fiber_of_rank());
  if (!std::exchange(any_calls_, true)) first_thread_ = work.thread();
  several_threads_ = several_threads_ || work.thread() != first_thread_;
  if (several_threads_) [[unlikely]]
    note_thread(work);
}

bool GroupState::has_calls() const noexcept {
  for (int rank = 0; rank < size(); ++rank) {
    if (collectives_.calls_of(rank) + point_to_point_.calls_of(rank) > 0) return true;
  }
  return false;
}

// Threads may take turns, as after a join. They do not if one calls while the call of another is in flight, or if one
// calls where another rank's main thread has called, or the other way round. A rank with a single thread makes its
// calls in order, wherever others make theirs.
void GroupState::note_thread(const RankWork& work) {
  auto& threads = threads_[work.rank()];
  if (threads.empty() && collectives_.calls_of(work.rank()) > 0) threads.insert(first_thread_);
  threads.insert(work.thread());
  Works in_flight;
  collectives_.list_in_flight(work.rank(), in_flight);
  const auto* const first = collectives_.first_call_with(work.rank());
  const bool race =
      std::ranges::any_of(in_flight, [&](const auto& other) { return other->thread() != work.thread(); }) ||
      (threads.size() > 1 && first != nullptr && (first->thread() == 0) != (work.thread() == 0));
  world_->habits.shares_with_threads(work.global_rank(), identity().name, race);
}

bool GroupState::admitted(RankWork& work) const {
  auto& call = work.operation;
  const bool is_pair = is_point_to_point(call.type);
  const auto before = is_pair ? point_to_point_.calls_of(work.rank()) : collectives_.calls_of(work.rank());
  for (auto* const each : world().options.interceptors) {
    if (each->on_call(call, identity(), work.global_rank(), before + 1) == CallInterceptor::Answer::skip) return false;
  }
  work.watch();
  return true;
}

void GroupState::lose(int rank, bool connections_break) {
  const int lost = identity().global_rank(rank);
  lost_.insert(lost);
  for (const auto& work : in_flight(rank)) {
    if (!WorkObserver(*work).waits_for().empty()) work->withdraw("was aborted", lost);
  }
  if (!connections_break) return;
  const auto why = failed_as_closed_by(lost);
  for (int peer = 0; peer < size(); ++peer) {
    for (const auto& work : in_flight(peer)) {
      const auto awaited = WorkObserver(*work).waits_for();
      if (std::ranges::find(awaited, lost) != awaited.end()) work->withdraw(why, lost);
    }
  }
}

Works GroupState::in_flight(int rank) const {
  Works works;
  collectives_.list_in_flight(rank, works);
  const auto by_sequence = [](const auto& a, const auto& b) { return a->getSequencenumber() < b->getSequencenumber(); };
  std::ranges::sort(works, by_sequence);
  Works sends_and_receives;
  point_to_point_.list_in_flight(rank, sends_and_receives);
  std::ranges::sort(sends_and_receives, by_sequence);
  works.insert(works.end(), sends_and_receives.begin(), sends_and_receives.end());
  return works;
}

void GroupState::list_pending(std::vector<PendingOperation>& pending, int only_of) const {
  collectives_.list_pending(pending, only_of);
  point_to_point_.list_pending(pending, only_of);
}

void GroupState::note_failure_known(int rank) noexcept {
  if (!closed()) world_->note_failure_known(identity().global_rank(rank));
}

void GroupState::note_aborted(const RankWork& work) {
  world_->services.habits.aborted(work.global_rank(), title_of(work));
}

bool GroupState::is_left_behind(const RankWork& work, const std::vector<int>& waits_for) const {
  if (closed()) return false;
  const auto is_lost = [&](int rank) { return lost_.contains(rank); };
  if (std::ranges::any_of(waits_for, is_lost)) return true;
  const bool was_in_flight = work.record().id() < world_->calls_before_failure(work.global_rank());
  const auto has_failed = [&](int rank) { return world_->calls_before_failure(rank) > 0; };
  return was_in_flight && std::ranges::any_of(waits_for, has_failed);
}

void GroupState::on_end(RankWork& work) {
  if (work.by_deadline.is_linked()) point_to_point_.no_longer_due(work);
  if (work.watched()) [[unlikely]]
    for (auto* const each : world_->options.interceptors) each->on_complete(work.operation, work.succeeded());
  auto* const member = find_member(work.rank());
  if (member == nullptr || !work.succeeded() || work.is_buffer()) return;
  if (member->has_hook()) {
    work.mark_asked();
    work.note_known();
  }
  member->completed(work);
}

void GroupState::note_known(const RankWork& work) noexcept {
  if (work.timed_out() && !closed()) [[unlikely]]
    timed_out_.try_emplace(work.rank(), title_of(work));
  const auto& call = work.operation;
  if (is_point_to_point(call.type) || is_monitored_barrier(call) || !work.record().is_open()) return;
  auto& known = known_[static_cast<std::size_t>(work.rank())];
  auto& until = call.type == c10d::OpType::BARRIER ? known.all : known.collectives;
  until = std::max(until, work.record().id());
}

void GroupState::note_all_known(int rank) noexcept { known_[static_cast<std::size_t>(rank)].all = world_->log.size(); }

void GroupState::on_known(const RankWork& work) noexcept {
  for (auto* const each : world_->options.interceptors) each->on_known(work.operation);
}

bool GroupState::is_unchanged(const RankWork& work) {
  const auto& all = world_->options.interceptors;
  return std::ranges::all_of(all, [&](auto* each) { return each->is_unchanged(work.operation); });
}

void GroupState::on_released(const RankWork& work) noexcept {
  for (auto* const each : world_->options.interceptors) each->on_released(work.operation);
}

void GroupState::on_unasked(const RankWork& work) {
  // Works that an exception leaves behind are a consequence of the failure, not its cause. So are works that the rank
  // had in flight when it learned of a failure, and that never succeeded.
  const bool was_in_flight = work.record().id() < world_->calls_before_failure(work.global_rank());
  if ((was_in_flight && !work.succeeded()) || world_->services.executor.ending() || std::uncaught_exceptions() > 0)
    return;
  world_->unwaited.note(*this, work);
}

void GroupState::close() noexcept {
  if (closed()) return;
  collectives_.close();
  point_to_point_.close();
  world_->services.fabric.close(identity());
  world_ = nullptr;
}

}  // namespace rehearse::comm
