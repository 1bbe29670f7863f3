// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <rehearse_internal/exec/check.h>
#include <rehearse_internal/exec/this_rank.h>

#include "collective_matcher.h"
#include "comm/agree/wording.h"
#include "comm/call/fingerprint.h"
#include "comm/work/pending_work.h"
#include "comm/work/work_observer.h"

namespace rehearse::comm {

CollectiveSlot::CollectiveSlot(const MatcherContext& context, CollectiveMatcher& matcher)
    : context_(context),
      group_(context.group),
      services_(context.services),
      matcher_(matcher),
      works_(group_.ranks.size()),
      calls_(works_.size()) {}

void CollectiveSlot::open(std::uint64_t sequence) noexcept {
  REHEARSE_CHECK(state_ == State::free && !armed(), sequence_, sequence, state_);
  state_ = State::open;
  sequence_ = sequence;
  arrived_ = 0;
  first_ = nullptr;
}

void CollectiveSlot::add(c10::intrusive_ptr<RankWork> work) {
  const auto rank = static_cast<std::size_t>(work->rank());
  REHEARSE_CHECK(state_ == State::open && works_[rank] == nullptr, sequence_, rank, state_);
  if (first_ == nullptr || signature_hash_ != work->signature) {
    signature_hash_ = work->signature;
    signature_ = context_.recorder.signature_of(work->operation, signature_hash_);
  }
  work->enter(this, sequence_,
              &context_.recorder.record(work->operation, work->rank(), sequence_, signature_, work->signature));
  if (work->deadline() != VirtualTime::max()) watch(work->deadline());
  const bool agrees =
      first_ == nullptr || (work->fingerprint == fingerprint_ && same_payload(work->operation, first_->operation));
  if (!agrees || dispute_ != nullptr) [[unlikely]]
    dispute(std::move(work));
  if (is_alltoall(work->operation.type) || !work->operation.parts.empty()) check_splits(*work);
  if (over()) [[unlikely]] {
    fail(*work);
  } else if (first_ == nullptr) {
    first_ = work.get();
    fingerprint_ = work->fingerprint;
  }
  calls_[rank] = &work->operation;
  works_[rank] = std::move(work);
  ++arrived_;
}

void CollectiveSlot::dispute(c10::intrusive_ptr<RankWork> work) {
  const bool opens = dispute_ == nullptr;
  if (opens) {
    dispute_ = std::make_unique<CallDispute>(context_, sequence_);
    const auto came_first = works_[static_cast<std::size_t>(first_->rank())];
    dispute_->add(came_first, context_.recorder.call_site(came_first->event()));
    for (const auto& other : works_) {
      if (other != nullptr && other != came_first) dispute_->add(other, context_.recorder.call_site(other->event()));
    }
  }
  RankWork& own = *work;
  works_[static_cast<std::size_t>(own.rank())] = work;
  ++arrived_;
  dispute_->add(std::move(work), exec::CallSite::capture());
  const WorkObserver observer(own);
  if (opens && services_.mismatches.begin_dispute()) dispute_->settle(observer);
  exec::this_rank::wait_for_the_end(observer);
}

void CollectiveSlot::launch() {
  REHEARSE_CHECK(state_ == State::open && full(), sequence_, arrived_, works_.size(), state_);
  if (over()) [[unlikely]]
    return end_in_failure();
  state_ = State::launched;
  prior_ = matcher_.begin(*this, waits_for_prior_work());
  if (prior_ == 0) start();
}

// As Gloo's barrier, which first waits for what its rank has called before, and NCCL's, whose turn comes after that.
bool CollectiveSlot::waits_for_prior_work() const noexcept {
  const auto& call = first_->operation;
  return call.type == c10d::OpType::BARRIER && call.tag != Operation::kMonitoredBarrier;
}

void CollectiveSlot::start() {
  REHEARSE_CHECK(state_ == State::launched && prior_ == 0, sequence_, prior_, state_);
  const auto now = services_.now();
  for (const auto& work : works_) work->start(now);
  transfer_ = {first_->operation.type, sequence_, &group_, calls_};
  services_.fabric.launch(transfer_, *this);
}

// In no rank's call: where it fails there is nobody to tell but the world.
void CollectiveSlot::start_in_turn() noexcept {
  try {
    start();
  } catch (const std::exception& error) {
    services_.executor.stop(fmt::format("{} could not start: {}", title_of(*first_), error.what()));
  }
}

void CollectiveSlot::on_launched() noexcept {
  REHEARSE_CHECK(state_ == State::launched, sequence_, state_);
  if (first_->operation.end == nullptr) return;
  services_.executor.note_progress();
  for (const auto& work : works_) work->launch();
}

void CollectiveSlot::on_done() noexcept {
  REHEARSE_CHECK(state_ == State::launched, sequence_, state_);
  const auto now = services_.now();
  services_.executor.note_progress();
  context_.recorder.note_completion(sequence_, now);
  // A thousand ranks' works and fibers do not fit the caches near the core: fetched ahead, they come side by side.
  constexpr std::size_t kAhead = 4;
  const std::size_t size = works_.size();
  for (std::size_t rank = 0; rank < size; ++rank) {
    if (rank + 2 * kAhead < size) works_[rank + 2 * kAhead]->prefetch();
    if (rank + kAhead < size) works_[rank + kAhead]->prefetch_waiter();
    works_[rank]->complete(now);
  }
  const auto sequence = sequence_;
  give_back();
  matcher_.end(sequence);
}

void CollectiveSlot::on_failed(std::exception_ptr why) noexcept {
  REHEARSE_CHECK(state_ == State::launched, sequence_, state_);
  services_.executor.note_progress();
  for (const auto& work : works_) {
    work->fail_on_device(why);
    matcher_.fail_barriers_after(*work, sequence_);
  }
  const auto sequence = sequence_;
  give_back();
  matcher_.end(sequence);
}

void CollectiveSlot::give_back() noexcept {
  REHEARSE_CHECK(state_ != State::free, sequence_);
  services_.timers().cancel(*this);
  for (auto& work : works_) work.reset();
  failed_ = false;
  timed_out_.clear();
  prior_ = 0;
  state_ = State::free;
  matcher_.give_back(*this);
}

void CollectiveSlot::withdraw(RankWork& work) {
  work.leave_meeting();
  if (state_ != State::open) return;  // the data is on its way
  works_[static_cast<std::size_t>(work.rank())].reset();
  --arrived_;
  if (first_ != &work) return;
  const auto next = std::find_if(works_.begin(), works_.end(), [](const auto& other) { return other != nullptr; });
  first_ = next != works_.end() ? next->get() : nullptr;
}

std::string CollectiveSlot::describe(const RankWork& work) const {
  if (dispute_ != nullptr || !disagreeing_.empty()) return disagreeing(title_of(work));
  if (prior_ > 0) {
    return fmt::format("{} (all ranks are here; earlier collectives of the group are under way)", title_of(work));
  }
  if (full()) return fmt::format("{} (all ranks are here; the transfer is under way)", title_of(work));
  return waiting_for_ranks(title_of(work), arrived_, works_.size());
}

std::vector<int> CollectiveSlot::waits_for(const RankWork& work) const {
  const int own = work.global_rank();
  if (dispute_ != nullptr) return dispute_->vote().opponents(own);
  if (auto others = disagreeing_; !others.empty()) {
    std::erase(others, own);
    return others;
  }
  std::vector<int> missing;
  for (std::size_t rank = 0; rank < works_.size(); ++rank) {
    if (works_[rank] == nullptr) missing.push_back(group_.global_rank(static_cast<int>(rank)));
  }
  return missing;
}

void CollectiveSlot::list_in_flight(int rank, Works& works) const {
  const auto& work = works_[static_cast<std::size_t>(rank)];
  if (work != nullptr && work->incomplete()) works.push_back(work);
}

void CollectiveSlot::list_pending(std::vector<PendingOperation>& pending, int only_of) const {
  for (const auto& work : works_) {
    if (work == nullptr || (!work->incomplete() && !work->timed_out())) continue;
    if (only_of >= 0 && work->global_rank() != only_of) continue;
    pending.push_back(pending_of(*work, *this));
  }
}

void CollectiveSlot::close() noexcept {
  if (state_ == State::free) return;
  if (state_ == State::launched) services_.fabric.cancel(*this);
  services_.timers().cancel(*this);
  for (auto& work : works_) {
    if (work != nullptr) work->leave_meeting();
    work.reset();
  }
  dispute_.reset();
  disagreeing_.clear();
  timed_out_.clear();
  prior_ = 0;
  state_ = State::free;
}

}  // namespace rehearse::comm
