// SPDX-License-Identifier: BSD-3-Clause
#include "faulty_fabric.h"

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rehearse/comm/errors.h>
#include <rehearse_internal/comm/connection_text.h>
#include <rehearse_internal/comm/title.h>

#include "corruption.h"

namespace rehearse::sim {

// A transfer that the fabric follows: it moves later, brings wrong data, or may be lost.
class FaultyFabric::Marked final : public comm::Completion, public exec::Timer {
 public:
  Marked(FaultyFabric& fabric, const comm::Transfer& transfer, comm::Completion& done, int sender)
      : fabric_(fabric), transfer_(transfer), done_(done), sender_(sender) {}

  std::vector<Corruption> corruptions;
  bool waits = false;              // to be overtaken by another message
  const Marked* behind = nullptr;  // a waiting message that this one must not overtake

  const comm::Completion& done() const noexcept { return done_; }
  bool held() const noexcept { return held_; }

  bool same_sender(const Marked& other) const noexcept {
    return is_pair() && other.is_pair() && sender_ >= 0 && sender_ == other.sender_;
  }
  // True if both messages go to one peer with one tag in one group. Such messages of a sender arrive in order.
  bool same_channel(const Marked& other) const noexcept {
    const auto& own = *transfer_.calls.front();
    const auto& others = *other.transfer_.calls.front();
    return transfer_.group == other.transfer_.group && own.peer == others.peer && own.tag == others.tag;
  }

  // True if the sender sent this message after `other`. Between two groups the order is unknown and counts as true.
  bool is_after(const Marked& other) const noexcept {
    return transfer_.group != other.transfer_.group || transfer_.sequence > other.transfer_.sequence;
  }

  // Launches the transfer, or holds it while a partition stops it.
  void launch() {
    held_ = fabric_.partitions_.stops(transfer_, sender_);
    if (!held_) fabric_.below().launch(transfer_, *this);
  }

  // `rank` is a rank of the world.
  bool is_of(int rank) const {
    const auto& group = *transfer_.group;
    if (is_pair()) return sender_ == rank || group.global_rank(transfer_.calls.front()->peer) == rank;
    return std::ranges::find(group.ranks, rank) != group.ranks.end();
  }

  void lose(int rank, bool connections_break) {
    fabric_.timers_.cancel(*this);
    fabric_.below().cancel(*this);
    waits = held_ = false;
    if (!connections_break) return;
    const auto& group = transfer_.group->name;
    const auto title = comm::short_title(comm::name_of(*transfer_.calls.front()), transfer_.sequence, group);
    on_failed(std::make_exception_ptr(
        CommError(fmt::format("{} {}", title, comm::failed_as_closed_by(rank)), group, transfer_.sequence, {rank})));
  }

  void on_launched() noexcept override { done_.on_launched(); }
  void on_done() noexcept override {
    for (const auto& corruption : corruptions) corruption.apply();
    comm::Completion& done = done_;
    FaultyFabric& fabric = fabric_;
    const auto overtaken = fabric.overtaken_by(*this);
    if (is_pair()) fabric.note_arrival(transfer_, sender_);
    fabric.under_way_.release(*this);
    done.on_done();
    fabric.launch_all(overtaken);
  }
  void on_failed(std::exception_ptr why) noexcept override {
    comm::Completion& done = done_;
    fabric_.under_way_.release(*this);
    done.on_failed(std::move(why));
  }
  void fire() override { fabric_.launch_all({this}); }

 private:
  bool is_pair() const noexcept { return transfer_.type == c10d::OpType::SEND; }

  FaultyFabric& fabric_;
  const comm::Transfer& transfer_;
  comm::Completion& done_;
  const int sender_;  // for a pair; negative: unknown
  bool held_ = false;
};

FaultyFabric::FaultyFabric(comm::Fabric& below, exec::TimerQueue& timers, const exec::Clock& clock,
                           Partitions& partitions)
    : ForwardingFabric(below), timers_(timers), clock_(clock), partitions_(partitions) {
  partitions.when_healed([this] { launch_held(); });
}

FaultyFabric::~FaultyFabric() {
  for (auto& marked : under_way_) timers_.cancel(marked);
}

void FaultyFabric::launch(const comm::Transfer& transfer, comm::Completion& done) {
  VirtualDuration by{}, latest{};
  std::vector<Corruption> corruptions;
  for (auto* const call : transfer.calls) {
    if (call->mark == nullptr) continue;
    const Mark& mark = mark_of(*call);
    by = std::max(by, mark.by);
    latest = std::max(latest, mark.latest);
    if (mark.corruption != nullptr) corruptions.emplace_back(*call, *mark.corruption);
  }
  const auto& first = *transfer.calls.front();
  const int sender = first.mark != nullptr ? mark_of(first).rank : -1;
  const bool at_once = by == VirtualDuration::zero() && latest == VirtualDuration::zero();
  if (at_once && corruptions.empty() && !follows_all_ && !partitions_.stops(transfer, sender)) {
    return below().launch(transfer, done);
  }
  Marked& marked = under_way_.follow(*this, transfer, done, sender);
  marked.corruptions = std::move(corruptions);
  marked.waits = latest > VirtualDuration::zero() && !is_overtaken(transfer, sender);
  const auto later = by + (marked.waits ? latest : VirtualDuration::zero());
  if (later > VirtualDuration::zero()) return timers_.arm(marked, clock_.now() + later);
  marked.behind = waiting_in_channel_of(marked);
  if (marked.behind == nullptr) marked.launch();
}

auto FaultyFabric::waiting_in_channel_of(const Marked& pair) -> const Marked* {
  return under_way_.find(
      [&](const Marked& each) { return each.waits && each.same_sender(pair) && each.same_channel(pair); });
}

void FaultyFabric::note_arrival(const comm::Transfer& pair, int sender) {
  auto& last = arrived_[{pair.group, sender}];
  last = std::max(last, pair.sequence);
}

// True if a later message has already arrived, because this one had to wait for its receive.
bool FaultyFabric::is_overtaken(const comm::Transfer& pair, int sender) const {
  const auto last = arrived_.find({pair.group, sender});
  return last != arrived_.end() && last->second > pair.sequence;
}

auto FaultyFabric::overtaken_by(const Marked& pair) -> std::vector<Marked*> {
  std::vector<Marked*> overtaken;
  for (auto& each : under_way_) {
    if (each.waits && each.same_sender(pair) && !each.same_channel(pair) && pair.is_after(each))
      overtaken.push_back(&each);
  }
  return overtaken;
}

// Launches the transfers in `next`, and those that have waited behind them. A launched transfer may complete at once,
// and other transfers with it, so `next` may name transfers that are gone.
void FaultyFabric::launch_all(std::vector<Marked*> next) {
  for (std::size_t i = 0; i < next.size(); ++i) {
    if (!under_way_.follows(next[i])) continue;
    for (auto& each : under_way_) {
      if (each.behind == next[i]) next.push_back(&each);
    }
    timers_.cancel(*next[i]);
    next[i]->waits = false;
    next[i]->behind = nullptr;
    next[i]->launch();
  }
}

void FaultyFabric::lose(int rank, bool connections_break) {
  std::vector<Marked*> its;
  for (auto& marked : under_way_) {
    if (marked.is_of(rank)) its.push_back(&marked);
  }
  for (auto* const marked : its) {
    if (under_way_.follows(marked)) marked->lose(rank, connections_break);
  }
}

// Runs when a partition ends; keeps the order of the transfers.
void FaultyFabric::launch_held() {
  std::vector<Marked*> held;
  for (auto& marked : under_way_) {
    if (marked.held()) held.push_back(&marked);
  }
  launch_all(std::move(held));
}

void FaultyFabric::cancel(comm::Completion& done) noexcept {
  Marked* const cancelled = under_way_.of(done);
  if (cancelled == nullptr) return below().cancel(done);
  timers_.cancel(*cancelled);
  below().cancel(*cancelled);
  for (auto& each : under_way_) {
    if (each.behind != cancelled) continue;
    each.behind = nullptr;
    timers_.arm(each, clock_.now());  // not launched here, because the group is still dealing with the cancelled call
  }
  under_way_.release(*cancelled);
}

}  // namespace rehearse::sim
