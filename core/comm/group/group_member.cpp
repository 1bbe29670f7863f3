// SPDX-License-Identifier: BSD-3-Clause
#include "group_member.h"

#include <utility>

#include <c10/util/ScopeExit.h>
#include <fmt/format.h>

#include <rehearse/comm/errors.h>

#include "comm/work/work_observer.h"
#include "group_state.h"
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

}  // namespace rehearse::comm
