// SPDX-License-Identifier: BSD-3-Clause
#include "comm/matcher/dispute.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <rehearse_internal/comm/title.h>
#include <rehearse_internal/exec/timer_queue.h>

#include "comm/call/fingerprint.h"

namespace rehearse::comm {

// Ends the wait for the others.
class Dispute::Patience final : public exec::Timer {
 public:
  Patience(exec::TimerQueue& timers, VirtualTime due, exec::WaitQueue& queue) : timers_(timers), queue_(queue) {
    timers_.arm(*this, due);
  }
  ~Patience() override { timers_.cancel(*this); }

  bool over = false;

 private:
  void fire() override {
    over = true;
    queue_.notify_all();
  }

  exec::TimerQueue& timers_;
  exec::WaitQueue& queue_;
};

void Dispute::take_side(std::size_t party, int rank, exec::CallSite where) {
  if (party == parties_.size()) parties_.emplace_back();
  auto& [ranks, place] = parties_[party];
  const auto before = std::lower_bound(ranks.begin(), ranks.end(), rank);
  if (before == ranks.begin()) place = std::move(where);
  ranks.insert(before, rank);
  if (++arrived_ == ranks_) queue_.notify_all();
}

std::vector<int> Dispute::opponents(int rank) const {
  std::vector<int> others;
  for (const auto& party : parties_) {
    if (std::binary_search(party.ranks.begin(), party.ranks.end(), rank)) continue;
    others.insert(others.end(), party.ranks.begin(), party.ranks.end());
  }
  std::sort(others.begin(), others.end());
  return others;
}

void Dispute::settle(const exec::Observer& observer) {
  try {
    wait_for_the_others(observer);
  } catch (...) {
    services_.mismatches.report(mismatch());
    throw;
  }
  services_.mismatches.fail(mismatch());
}

void Dispute::wait_for_the_others(const exec::Observer& observer) {
  constexpr VirtualDuration kPatience = std::chrono::seconds(1);
  const Patience patience(services_.timers(), services_.now() + kPatience, queue_);
  while (arrived_ < ranks_ && !patience.over) queue_.wait(observer);
}

std::vector<std::size_t> Dispute::in_order() const {
  std::vector<std::size_t> order(parties_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [this](std::size_t a, std::size_t b) {
    if (has_majority(a) != has_majority(b)) return has_majority(a);
    return parties_[a].ranks.front() < parties_[b].ranks.front();
  });
  return order;
}

Mismatch Dispute::mismatch_of(const std::vector<std::size_t>& order, const std::vector<std::string>& texts) const {
  const auto side_of = [&](std::size_t party) {
    const auto& [ranks, where] = parties_[party];
    return Mismatch::Side{ranks.front(), texts[party], where, ranks};
  };
  Mismatch mismatch;
  mismatch.has_majority = has_majority(order[0]);
  mismatch.first = side_of(order[0]);
  mismatch.second = side_of(order[1]);
  for (std::size_t i = 2; i < order.size(); ++i) mismatch.others.push_back(side_of(order[i]));
  return mismatch;
}

CallDispute::CallDispute(const MatcherContext& context, std::uint64_t sequence)
    : Dispute(context.services, context.group.ranks.size()), group_(context.group), sequence_(sequence) {}

void CallDispute::add(c10::intrusive_ptr<RankWork> work, exec::CallSite where) {
  const auto alike = [&work](const auto& call) {
    return call->fingerprint == work->fingerprint && same_payload(call->operation, work->operation);
  };
  const auto party = static_cast<std::size_t>(std::find_if(calls_.begin(), calls_.end(), alike) - calls_.begin());
  const int rank = work->global_rank();
  if (party == calls_.size()) calls_.push_back(std::move(work));
  take_side(party, rank, std::move(where));
}

Mismatch CallDispute::mismatch() const {
  std::vector<std::string> texts;
  for (const auto& call : calls_) texts.push_back(side_of(call->operation, call->rank(), group_, {}).fingerprint);
  const auto order = in_order();
  auto mismatch = mismatch_of(order, texts);
  mismatch.kind = Mismatch::Kind::collective;
  mismatch.group = group_.name;
  mismatch.sequence = sequence_;
  mismatch.fields = differences(calls_[order[0]]->operation, calls_[order[1]]->operation);
  return mismatch;
}

}  // namespace rehearse::comm
