// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <rehearse_internal/exec/check.h>

#include "comm/work/pending_work.h"
#include "point_to_point_matcher.h"

namespace rehearse::comm {

void MatchedPair::join(c10::intrusive_ptr<RankWork> send, c10::intrusive_ptr<RankWork> recv) {
  REHEARSE_CHECK(send_ == nullptr && recv_ == nullptr, send->rank(), recv->rank());
  calls_[0] = &send->operation;
  calls_[1] = &recv->operation;
  recv->set_source(send->rank());
  send->move_to(this);
  recv->move_to(this);
  send_ = std::move(send);
  recv_ = std::move(recv);
  held_ = true;
}

void MatchedPair::launch() {
  REHEARSE_CHECK(held_ && send_ != nullptr, held_);
  held_ = false;
  const auto now = context_.services.now();
  send_->start(now);
  recv_->start(now);
  transfer_ = {c10d::OpType::SEND, send_->getSequencenumber(), &context_.group, calls_};
  context_.services.fabric.launch(transfer_, *this);
}

void MatchedPair::on_launched() noexcept {
  if (recv_->operation.end == nullptr) return;
  context_.services.executor.note_progress();
  send_->launch();
  recv_->launch();
}

void MatchedPair::on_done() noexcept {
  REHEARSE_CHECK(!held_ && send_ != nullptr, held_);
  const auto now = context_.services.now();
  context_.services.executor.note_progress();
  context_.recorder.note_completion(recv_->getSequencenumber(), now);
  send_->complete(now);
  recv_->complete(now);
  send_.reset();
  recv_.reset();
  matcher_.give_back(*this);
}

void MatchedPair::on_failed(std::exception_ptr why) noexcept {
  REHEARSE_CHECK(!held_ && send_ != nullptr, held_);
  context_.services.executor.note_progress();
  send_->fail(why);
  recv_->fail(why);
  send_.reset();
  recv_.reset();
  matcher_.give_back(*this);
}

// One of the two calls has reached its time limit. The transfer ends for both calls, and writes nothing.
void MatchedPair::expire(RankWork& work) {
  REHEARSE_CHECK(&work == send_.get() || &work == recv_.get(), work.rank());
  if (held_) {
    matcher_.batches().fail(*this);
  } else {
    context_.services.fabric.cancel(*this);
  }
  const auto send = std::move(send_), recv = std::move(recv_);
  matcher_.give_back(*this);
  work.time_out();
  RankWork& other = &work == send.get() ? *recv : *send;
  if (other.deadline() <= context_.services.limit_now()) other.time_out();
  if (other.incomplete()) matcher_.refuse(other, work);
}

std::vector<int> MatchedPair::waits_for(const RankWork& work) const {
  std::vector<int> ranks;
  if (!held_) return ranks;
  for (const auto& other : matcher_.batches().unmatched_elsewhere(*this, work)) {
    ranks.push_back(other->global_rank());
  }
  std::ranges::sort(ranks);
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

std::string MatchedPair::describe(const RankWork& work) const {
  if (held_) {
    const auto others = matcher_.batches().unmatched_elsewhere(*this, work);
    if (others.empty()) return title_of(work) + " (matched; it moves with the rest of its batch)";
    return fmt::format("{} (matched; it moves with a batch of rank {}, whose {} has no peer yet)", title_of(work),
                       others.front()->global_rank(), title_of(*others.front()));
  }
  return fmt::format("{} (matched; the transfer is under way)", title_of(work));
}

void MatchedPair::list_in_flight(int rank, Works& works) const {
  for (const auto& work : {send_, recv_}) {
    if (work != nullptr && work->rank() == rank && work->incomplete() && !work->is_buffer()) works.push_back(work);
  }
}

void MatchedPair::list_pending(std::vector<PendingOperation>& pending, int only_of) const {
  for (const auto* const work : {send_.get(), recv_.get()}) {
    if (work == nullptr || !work->incomplete()) continue;
    if (only_of >= 0 && work->global_rank() != only_of) continue;
    pending.push_back(pending_of(*work, *this));
    pending.back().waits_for.clear();  // the peer has arrived, even if the pair is held
  }
}

void MatchedPair::close() noexcept {
  if (send_ == nullptr) return;
  if (!held_) context_.services.fabric.cancel(*this);
  held_ = false;
  send_->leave_match();
  recv_->leave_match();
  send_.reset();
  recv_.reset();
}

}  // namespace rehearse::comm
