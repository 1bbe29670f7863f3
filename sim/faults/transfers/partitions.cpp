// SPDX-License-Identifier: BSD-3-Clause
#include "partitions.h"

#include <algorithm>
#include <utility>

namespace rehearse::sim {
namespace {

std::vector<char> members(const std::vector<int>& of, int ranks) {
  std::vector<char> is_in(static_cast<std::size_t>(ranks));
  for (const int rank : of) is_in[static_cast<std::size_t>(rank)] = 1;
  return is_in;
}

// The last firing whose cut still stood at `end`; null: none did.
const FaultLine::Firing* standing(const FaultLine& line, const Fault& fault, VirtualTime healed, VirtualTime end) {
  const FaultLine::Firing* last = nullptr;
  for (const auto& firing : line.fired) {
    const bool over = fault.amount > VirtualDuration::zero() && fault.amount <= end - firing.at;
    if (!over && firing.at >= healed) last = &firing;
  }
  return last;
}

}  // namespace

class Partitions::Cut final : public exec::Timer {
 public:
  Cut(Partitions& all, const Fault& fault)
      : all_(all), way_(fault.way), own_(members(fault.ranks, all.ranks_)), others_(members(fault.from, all.ranks_)) {
    if (!fault.from.empty()) return;
    for (std::size_t rank = 0; rank < own_.size(); ++rank) others_[rank] = own_[rank] == 0 ? 1 : 0;
  }

  bool stops(int from, int to) const {
    const bool goes_out = is_in(own_, from) && is_in(others_, to), comes_in = is_in(others_, from) && is_in(own_, to);
    return (goes_out && way_ != Fault::Way::in) || (comes_in && way_ != Fault::Way::out);
  }

  bool stops(const comm::Transfer& transfer, int sender) const {
    const auto& group = *transfer.group;
    const auto& ranks = group.ranks;
    const auto& call = *transfer.calls.front();
    const auto any = [&](const auto& holds) { return std::ranges::any_of(ranks, holds); };
    switch (transfer.type) {
      case c10d::OpType::SEND: {
        const int peer = transfer.calls.back()->peer;
        const int from = peer >= 0 ? group.global_rank(peer) : sender;
        return from >= 0 && stops(from, group.global_rank(call.peer));
      }
      case c10d::OpType::BROADCAST:
      case c10d::OpType::SCATTER:
        return any([&, root = group.global_rank(call.root)](int rank) { return stops(root, rank); });
      case c10d::OpType::REDUCE:
      case c10d::OpType::GATHER:
        return any([&, root = group.global_rank(call.root)](int rank) { return stops(rank, root); });
      default:
        return any([&](int rank) { return is_in(own_, rank); }) && any([&](int rank) { return is_in(others_, rank); });
    }
  }

  void fire() override { all_.end(*this); }
  Kind kind() const noexcept override { return Kind::fault; }

 private:
  static bool is_in(const std::vector<char>& side, int rank) { return side[static_cast<std::size_t>(rank)] != 0; }

  Partitions& all_;
  const Fault::Way way_;
  const std::vector<char> own_;
  std::vector<char> others_;
};

Partitions::Partitions(exec::TimerQueue& timers, const exec::Clock& clock, int ranks)
    : timers_(timers), clock_(clock), ranks_(ranks) {}

Partitions::~Partitions() {
  for (auto& cut : cuts_) timers_.cancel(cut);
}

void Partitions::begin(const Fault& partition) {
  Cut& cut = cuts_.emplace_back(*this, partition);
  const auto now = clock_.now();
  const bool ends = partition.amount > VirtualDuration::zero() && partition.amount < VirtualTime::max() - now;
  if (ends) timers_.arm(cut, now + partition.amount);
}

void Partitions::end_all() {
  if (cuts_.empty()) return;
  for (auto& cut : cuts_) timers_.cancel(cut);
  cuts_.clear();
  tell_healed();
}

void Partitions::end(const Cut& cut) {
  cuts_.remove_if([&](const Cut& each) { return &each == &cut; });
  tell_healed();
}

void Partitions::tell_healed() const {
  for (const auto& then : healed_) then();
}

bool Partitions::any() const noexcept { return !cuts_.empty(); }

bool Partitions::stops(int from, int to) const {
  return std::ranges::any_of(cuts_, [&](const Cut& cut) { return cut.stops(from, to); });
}

bool Partitions::stops(const comm::Transfer& transfer, int sender) const {
  if (cuts_.empty()) return false;
  if (transfer.calls.front()->parts.empty()) {
    return std::ranges::any_of(cuts_, [&](const Cut& cut) { return cut.stops(transfer, sender); });
  }
  bool any = false;
  comm::for_each_part(transfer, [&](std::size_t, const comm::Transfer& part, std::span<comm::Operation*>) {
    any = any || stops(part, sender);
  });
  return any;
}

std::vector<StandingCut> standing_cuts(const std::vector<FaultLine>& lines, VirtualTime end) {
  std::vector<Fault> faults;
  for (const auto& line : lines) faults.push_back(parse_fault(line.fault));
  auto healed = kTimeZero;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (faults[i].verb != Fault::Verb::heal) continue;
    for (const auto& firing : lines[i].fired) healed = std::max(healed, firing.at);
  }
  std::vector<StandingCut> cuts;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (faults[i].verb != Fault::Verb::partition) continue;
    if (const auto* const firing = standing(lines[i], faults[i], healed, end)) cuts.push_back({faults[i], firing->at});
  }
  return cuts;
}

}  // namespace rehearse::sim
