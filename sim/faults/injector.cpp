// SPDX-License-Identifier: BSD-3-Clause
#include "injector.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include <rehearse/comm/errors.h>
#include <rehearse/exec/crash.h>
#include <rehearse/exec/this_rank.h>
#include <rehearse/formatting/rank_list.h>
#include <rehearse/sim/format_time.h>

#include "fault_fields.h"

namespace rehearse::sim {
namespace {

constexpr std::size_t kFiringsKept = 8;

bool is_of(const Fault& fault, int rank) {
  return fault.ranks.empty() || std::find(fault.ranks.begin(), fault.ranks.end(), rank) != fault.ranks.end();
}

// It needs no call to come.
bool is_timed(const Fault& fault) {
  const bool of_calls = fault.at || fault.call || !fault.group.empty() || !fault.label.empty();
  return fault.verb == Fault::Verb::crash && fault.after && !of_calls && fault.p == 1;
}

class HangObserver final : public exec::Observer {
 public:
  explicit HangObserver(std::string text) : text_(std::move(text)) {}
  std::string describe() const override { return text_; }

 private:
  const std::string text_;
};

}  // namespace

class FaultInjector::CrashTimer final : public exec::Timer {
 public:
  CrashTimer(FaultInjector& injector, std::size_t plan, int rank) : injector_(injector), plan_(plan), rank_(rank) {}
  void fire() override { injector_.crash_now(injector_.plans_[plan_], rank_); }

 private:
  FaultInjector& injector_;
  const std::size_t plan_;
  const int rank_;
};

std::string FaultInjector::Moment::title() const {
  return fmt::format("{} #{} on group \"{}\"", comm::name_of(call), sequence, group.name);
}

FaultInjector::FaultInjector(const std::vector<Fault>& faults, exec::RankExecutor& executor, FaultyFabric& fabric)
    : executor_(executor), fabric_(fabric) {
  for (const auto& fault : faults) {
    Plan plan{&fault, {}, {}, 0};
    plan.line.fault = rehearse::to_string(fault);
    plan.line.optional = fault.optional;
    plans_.push_back(std::move(plan));
  }
}

FaultInjector::~FaultInjector() {
  for (const auto& timer : timers_) executor_.timers().cancel(*timer);
}

void FaultInjector::begin(comm::Communicators& communicators) {
  communicators_ = &communicators;
  for (std::size_t i = 0; i < plans_.size(); ++i) {
    const Fault& fault = *plans_[i].fault;
    const bool is_slow = fault.verb == Fault::Verb::slow;
    if (!is_slow && !is_timed(fault)) continue;
    for (int rank = 0; rank < executor_.options().ranks; ++rank) {
      if (!is_of(fault, rank)) continue;
      if (is_slow) {
        note(plans_[i], rank, "");
        continue;
      }
      timers_.push_back(std::make_unique<CrashTimer>(*this, i, rank));
      executor_.timers().arm(*timers_.back(), kTimeZero + *fault.after);
    }
  }
}

void FaultInjector::note(Plan& plan, int rank, std::string call) {
  ++plan.line.times;
  ++plan.on_rank[rank];
  if (plan.line.fired.size() < kFiringsKept)
    plan.line.fired.push_back({rank, std::move(call), executor_.clock().now()});
}

auto FaultInjector::admit(const comm::Operation& call, const comm::GroupIdentity& group, int rank,
                          std::uint64_t sequence) -> Answer {
  const Moment moment{call, group, rank, sequence};
  fabric_.forget(call);
  ++calls_[{rank, call.type}];
  ++all_calls_[rank];
  refuse_broken(moment);
  for (auto& plan : plans_) {
    if (!is_due(plan, moment)) continue;
    note(plan, rank, moment.title());
    if (act(*plan.fault, moment) == Answer::skip) return Answer::skip;
  }
  return Answer::pass;
}

bool FaultInjector::is_due(Plan& plan, const Moment& moment) {
  const Fault& fault = *plan.fault;
  if (!is_of(fault, moment.rank) || !fits(plan, moment)) return false;
  return fault.p == 1 || draw(plan);
}

bool FaultInjector::fits(const Plan& plan, const Moment& moment) const {
  const Fault& fault = *plan.fault;
  if (fault.verb == Fault::Verb::slow || is_timed(fault)) return false;
  if (const auto fired = plan.on_rank.find(moment.rank); fired != plan.on_rank.end() && fired->second >= fault.times)
    return false;
  if (fault.verb == Fault::Verb::skip_collective && comm::is_point_to_point(moment.call.type)) return false;
  if (fault.verb == Fault::Verb::corrupt && moment.call.outputs.empty()) return false;
  if (!fault.group.empty() && fault.group != moment.group.name) return false;
  if (!fault.label.empty() && (moment.call.label == nullptr || *moment.call.label != fault.label)) return false;
  if (fault.after && executor_.clock().now() < kTimeZero + *fault.after) return false;
  return fits(fault.at, moment, true) && fits(fault.call, moment, false);
}

bool FaultInjector::fits(const std::optional<Fault::Point>& point, const Moment& moment, bool in_group) const {
  if (!point) return true;
  if (!point->op.empty() && point->op != comm::op_row(moment.call.type).name) return false;
  if (point->number == 0) return true;
  if (in_group) return point->number == moment.sequence;
  return point->number == (point->op.empty() ? all_calls_.at(moment.rank) : calls_.at({moment.rank, moment.call.type}));
}

bool FaultInjector::draw(Plan& plan) {
  constexpr double kParts = 1e6;
  const auto yes = static_cast<std::uint32_t>(std::lround(plan.fault->p * kParts));
  constexpr std::array<std::uint32_t, 2> kNoOrYes{0, 1};
  const std::array<std::uint32_t, 2> weights{static_cast<std::uint32_t>(kParts) - yes, yes};
  ++plan.drawn;
  return executor_.decisions().choose(ChoiceKind::fault, kNoOrYes, weights) == 1;
}

auto FaultInjector::act(const Fault& fault, const Moment& moment) -> Answer {
  switch (fault.verb) {
    case Fault::Verb::crash:
      crash(fault, moment.rank, moment.title());
      break;
    case Fault::Verb::exit:
      std::exit(fault.status);  // here the rank's failure: see core/exec/interpose/process
    case Fault::Verb::hang:
      hung_.wait(HangObserver("an injected hang before " + moment.title()));
      break;
    case Fault::Verb::pause:
      exec::this_rank::sleep_for(fault.amount, "an injected pause");
      break;
    case Fault::Verb::slow:
      break;
    case Fault::Verb::delay:
      fabric_.delay(moment.call, fault.amount);
      break;
    case Fault::Verb::skip_collective:
      return Answer::skip;
    case Fault::Verb::fail_op:
      throw CommError(fmt::format("{} failed: an injected error of the back end", moment.title()), moment.group.name,
                      moment.sequence, {moment.rank});
    case Fault::Verb::corrupt:
      fabric_.corrupt(moment.call, fault.with);
      break;
  }
  return Answer::pass;
}

void FaultInjector::crash(const Fault& fault, int rank, std::string call) {
  crashed_[rank] = std::move(call);
  const bool breaks = fault.peers == Fault::Peers::disconnect;
  if (breaks) broken_.insert(rank);
  communicators_->lose(rank, breaks);
  exec::crash_rank(executor_, rank);
}

void FaultInjector::crash_now(Plan& plan, int rank) {
  if (crashed_.contains(rank) || !exec::is_alive(executor_, rank)) return;
  note(plan, rank, "");
  crash(*plan.fault, rank, "");
}

// A group without one of its ranks carries nothing.
void FaultInjector::refuse_broken(const Moment& moment) const {
  for (const int lost : broken_) {
    const auto& ranks = moment.group.ranks;
    if (std::find(ranks.begin(), ranks.end(), lost) == ranks.end()) continue;
    throw CommError(fmt::format("{} failed: rank {} closed the connection", moment.title(), lost), moment.group.name,
                    moment.sequence, {lost});
  }
}

std::vector<FaultLine> FaultInjector::ledger(const exec::RunOutcome& outcome) const {
  std::vector<FaultLine> lines;
  for (const auto& plan : plans_) {
    lines.push_back(plan.line);
    if (plan.line.times == 0 && plan.line.why_not.empty()) lines.back().why_not = why_not(plan, outcome);
  }
  return lines;
}

std::string FaultInjector::why_not(const Plan& plan, const exec::RunOutcome& outcome) const {
  const Fault& fault = *plan.fault;
  if (is_timed(fault)) {
    return fmt::format("the run ended at {}, or the rank before", format_time(outcome.end_time));
  }
  if (plan.drawn > 0) {
    return fmt::format("drawn {} time{}, and never taken", plan.drawn, plan.drawn == 1 ? "" : "s");
  }
  std::uint64_t calls = 0;
  for (const auto& [rank, count] : all_calls_) calls += is_of(fault, rank) ? count : 0;
  return fmt::format("no call fitted; {} made {} call{}",
                     fault.ranks.empty() ? "all ranks" : describe_ranks(fault.ranks), calls, calls == 1 ? "" : "s");
}

}  // namespace rehearse::sim
