// SPDX-License-Identifier: BSD-3-Clause
#include "injector.h"

#include <algorithm>

#include <fmt/format.h>

#include <rehearse/comm/errors.h>
#include <rehearse_internal/comm/connection_text.h>
#include <rehearse_internal/comm/title.h>
#include <rehearse_internal/exec/check.h>
#include <rehearse_internal/exec/clock_jump.h>
#include <rehearse_internal/exec/crash.h>
#include <rehearse_internal/exec/restart.h>
#include <rehearse_internal/exec/this_rank.h>
#include <rehearse_internal/sim/format_time.h>

#include "faults/text/fault_fields.h"
#include "faults/transfers/corruption.h"
#include "schedule/units.h"

namespace rehearse::sim {
namespace {

class HangObserver final : public exec::Observer {
 public:
  explicit HangObserver(std::string text) : text_(std::move(text)) {}

 private:
  exec::Wait describe() const override { return {text_}; }

  const std::string text_;
};

}  // namespace

std::string FaultInjector::InterceptedCall::title() const {
  return comm::short_title(comm::name_of(call), sequence, group.name);
}

FaultInjector::FaultInjector(exec::RankExecutor& executor, FaultLedger& ledger, FaultyFabric& fabric,
                             Partitions& partitions, StoreFaults& store, MemoryMeter* memory)
    : executor_(executor), ledger_(ledger), fabric_(fabric), partitions_(partitions), store_(store), memory_(memory) {}

void FaultInjector::begin(comm::Communicators& communicators) {
  communicators_ = &communicators;
  for (auto& plan : ledger_.plans()) {
    const auto& traits = traits_of(plan.fault->verb);
    if (traits.ends_rank || traits.takes == FaultTraits::Takes::sends) fabric_.follow_all();
    if (!traits.of_run) continue;
    for (int rank = 0; rank < executor_.options().ranks; ++rank) {
      if (is_of(*plan.fault, rank)) ledger_.note(plan, rank, "");
    }
  }
  ledger_.begin([this](FaultPlan& plan, int rank) { inject(plan, rank); });
  store_.when_due(
      [this](FaultPlan& plan, int rank, const std::string& title) { act_outside_groups(plan, rank, title); });
}

auto FaultInjector::on_call(comm::Operation& call, const comm::GroupIdentity& group, int rank, std::uint64_t sequence)
    -> Answer {
  const InterceptedCall intercepted{call, group, rank, sequence};
  fabric_.expect(call, rank);
  ++calls_[{rank, call.type}];
  ++all_calls_[rank];
  ledger_.count_call(rank);
  look_at(intercepted);
  refuse_lost(intercepted);
  const auto begun = executor_.clock().now();
  for (auto& plan : ledger_.plans()) {
    if (!is_due(plan, intercepted)) continue;
    if (!traits_of(plan.fault->verb).of_memory) ledger_.note(plan, rank, intercepted.title());
    if (act(plan, intercepted) == Answer::skip) return Answer::skip;
  }
  if (executor_.clock().now() > begun) refuse_lost(intercepted);  // a rank may have crashed during a pause
  return Answer::pass;
}

bool FaultInjector::is_due(FaultPlan& plan, const InterceptedCall& intercepted) {
  return ledger_.is_open(plan, intercepted.rank) && fits(plan, intercepted) && ledger_.draw(plan);
}

// Records the calls that almost fitted, to explain later why a fault did not fire.
void FaultInjector::look_at(const InterceptedCall& intercepted) {
  for (auto& plan : ledger_.plans()) {
    const Fault& fault = *plan.fault;
    const bool of_others = !is_of(fault, intercepted.rank) || callee_of(fault) != Callee::group || needs_no_call(fault);
    if (of_others || (!fault.group.empty() && fault.group != intercepted.group.name)) continue;
    const bool has_number = fits(fault.at, intercepted, true) && fits(fault.call, intercepted, false);
    plan.targets[intercepted.rank].nearly.look_at(fault, {intercepted.call, intercepted.group, intercepted.sequence,
                                                          is_its_kind(fault, intercepted), has_number});
  }
}

void FaultInjector::note_refused(const InterceptedCall& intercepted, const std::string& why) {
  for (auto& plan : ledger_.plans()) {
    if (ledger_.is_open(plan, intercepted.rank) && fits(plan, intercepted))
      plan.targets[intercepted.rank].nearly.refuse(why);
  }
}

// True if the fault applies to this kind of call, whatever its number, group and label are.
bool FaultInjector::is_its_kind(const Fault& fault, const InterceptedCall& intercepted) const {
  if (callee_of(fault) != Callee::group || needs_no_call(fault)) return false;
  const auto takes = traits_of(fault.verb).takes;
  if (takes == FaultTraits::Takes::collectives && comm::is_point_to_point(intercepted.call.type)) return false;
  const bool is_send = intercepted.call.type == c10d::OpType::SEND;
  if (takes == FaultTraits::Takes::sends && !is_send) return false;
  // A buffered send has completed already, so nothing can move it later.
  if (traits_of(fault.verb).holds_up && is_send && communicators_->options().buffered_sends) return false;
  const auto is_named = [&](const std::optional<Fault::Point>& point) {
    return !point || point->op.empty() || point->op == comm::op_row(intercepted.call.type).name;
  };
  return is_named(fault.at) && is_named(fault.call);
}

bool FaultInjector::fits(const FaultPlan& plan, const InterceptedCall& intercepted) const {
  const Fault& fault = *plan.fault;
  if (!is_its_kind(fault, intercepted)) return false;
  if (!fault.group.empty() && fault.group != intercepted.group.name) return false;
  if (!fault.label.empty() && (intercepted.call.label == nullptr || *intercepted.call.label != fault.label))
    return false;
  if (fault.verb == Fault::Verb::corrupt && !can_corrupt(intercepted.call, fault)) return false;
  if (fault.verb == Fault::Verb::heal && !partitions_.any()) return false;
  if (fault.verb == Fault::Verb::fail_alloc && to_come_.contains({&plan, intercepted.rank})) return false;
  return fits(fault.at, intercepted, true) && fits(fault.call, intercepted, false);
}

bool FaultInjector::fits(const std::optional<Fault::Point>& point, const InterceptedCall& intercepted,
                         bool in_group) const {
  if (!point || point->number == 0) return true;
  if (in_group) return point->number == intercepted.sequence;
  return point->number ==
         (point->op.empty() ? all_calls_.at(intercepted.rank) : calls_.at({intercepted.rank, intercepted.call.type}));
}

// Carries out a fault at a call of a group.
auto FaultInjector::act(FaultPlan& plan, const InterceptedCall& intercepted) -> Answer {
  const Fault& fault = *plan.fault;
  switch (fault.verb) {
    case Fault::Verb::delay:
      fabric_.delay(intercepted.call, fault.amount);
      break;
    case Fault::Verb::skip_collective:
      return Answer::skip;
    case Fault::Verb::fail_op:
      throw CommError(fmt::format("{} failed: an injected error of the back end",
                                  title_of(intercepted.call, intercepted.sequence, intercepted.group)),
                      intercepted.group.name, intercepted.sequence, {intercepted.rank});
    case Fault::Verb::corrupt:
      fabric_.corrupt(intercepted.call, fault);
      break;
    case Fault::Verb::reorder:
      fabric_.reorder(intercepted.call, fault.amount);
      break;
    case Fault::Verb::exit:  // the rank's failure shows this title, so it includes the label
      act_on_rank(plan, intercepted.rank, title_of(intercepted.call, intercepted.sequence, intercepted.group));
      break;
    default:
      act_on_rank(plan, intercepted.rank, intercepted.title());
  }
  return Answer::pass;
}

void FaultInjector::act_outside_groups(FaultPlan& plan, int rank, const std::string& call) {
  if (plan.fault->verb == Fault::Verb::heal && !partitions_.any()) return;
  if (!traits_of(plan.fault->verb).of_memory) ledger_.note(plan, rank, call);
  act_on_rank(plan, rank, call);
}

void FaultInjector::act_on_rank(FaultPlan& plan, int rank, const std::string& call) {
  const Fault& fault = *plan.fault;
  switch (fault.verb) {
    case Fault::Verb::crash:
    case Fault::Verb::torn_write:
      return end_process(plan, rank, call);
    case Fault::Verb::exit:
      if (fault.restart || fault.peers == Fault::Peers::disconnect || ledger_.may_begin_again(rank)) {
        return end_process(plan, rank, fmt::format("exit({}) in {}", fault.status, call));
      }
      exec::exit_rank(fault.status, call);
    case Fault::Verb::hang:
      exec::this_rank::wait_for_the_end(HangObserver("an injected hang before " + call));
    case Fault::Verb::pause:
      return exec::this_rank::sleep_for(fault.amount, "an injected pause");
    case Fault::Verb::partition:
      return partitions_.begin(fault);
    case Fault::Verb::heal:
      return partitions_.end_all();
    case Fault::Verb::clock_jump:
      return jump_clocks(fault, rank);
    case Fault::Verb::fail_alloc:
      return fail_allocation(plan, rank, " behind " + call);
    default:
      return;  // slow and restart need no call; StoreFaults and DiskFaults carry out the rest
  }
}

void FaultInjector::end_process(FaultPlan& plan, int rank, std::string how) {
  crashed_[rank] = std::move(how);
  const bool breaks = plan.fault->peers == Fault::Peers::disconnect;
  lose(rank, breaks);
  fabric_.lose(rank, breaks);
  if (plan.fault->restart) {
    const auto firing = plan.line.fired.size() - 1;
    const bool is_kept = plan.line.times == plan.line.fired.size();
    exec::restart_rank(executor_, rank, *plan.fault->restart, [this, &plan, rank, firing, is_kept] {
      if (is_kept) plan.line.fired[firing].began_again = executor_.clock().now();
      begin_again(rank);
    });
  }
  exec::crash_rank(executor_, rank);
}

void FaultInjector::lose(int rank, bool connections_break) {
  const auto groups = static_cast<std::uint32_t>(communicators_->events().groups().size());
  losses_[rank] = {groups, connections_break, true};
  communicators_->lose(rank, connections_break);
}

void FaultInjector::begin_again(int rank) {
  if (!losses_.contains(rank) || !losses_[rank].is_down) lose(rank, false);  // the rank had ended by itself
  losses_[rank].is_down = false;
  crashed_.erase(rank);
  communicators_->begin_again(rank);
  if (memory_ != nullptr) memory_->begin_again(rank);
}

void FaultInjector::fail_allocation(FaultPlan& plan, int rank, const std::string& since) {
  to_come_.insert({&plan, rank});
  memory_->fail_next(rank, plan.fault->bytes, [this, &plan, rank, since](std::uint64_t size) {
    to_come_.erase({&plan, rank});
    ledger_.note(plan, rank, fmt::format("an allocation of {}{}", units::about_bytes(size), since));
  });
}

void FaultInjector::jump_clocks(const Fault& fault, int rank) {
  exec::jump_clocks(executor_, rank, {fault.by, fault.clock == Fault::Clocks::all ? fault.by : VirtualDuration()});
}

// Carries out a fault whose time has come, or that another fault triggers.
void FaultInjector::inject(FaultPlan& plan, int rank) {
  const Fault& fault = *plan.fault;
  switch (fault.verb) {
    case Fault::Verb::crash:
      if (crashed_.contains(rank) || !exec::is_alive(executor_, rank)) return;
      ledger_.note(plan, rank, "");
      return end_process(plan, rank, "");
    case Fault::Verb::partition:
      ledger_.note(plan, rank, "");
      return partitions_.begin(fault);
    case Fault::Verb::heal:
      if (!partitions_.any()) {
        plan.line.why_not = fmt::format("nothing was cut at {}", format_time(executor_.clock().now()));
        return;
      }
      ledger_.note(plan, rank, "");
      return partitions_.end_all();
    case Fault::Verb::lose_key:
      if (store_.lose(fault)) return ledger_.note(plan, rank, "");
      plan.line.why_not = fmt::format("the store had no such key at {}", format_time(executor_.clock().now()));
      return;
    case Fault::Verb::clock_jump:
      if (!exec::is_alive(executor_, rank)) return;
      ledger_.note(plan, rank, "");
      return jump_clocks(fault, rank);
    case Fault::Verb::fail_alloc:
      return fail_allocation(plan, rank, "");
    case Fault::Verb::restart:
      ledger_.note(plan, rank, "");
      return begin_again(rank);
    default:
      REHEARSE_CHECK(!traits_of(fault.verb).alone, fault.verb);
  }
}

// Fails a call on a group if a rank of the group was lost and that rank's connections broke. If the group is newer than
// the loss, its calls fail only until that rank begins again. Also fails every call that a restarted rank makes on one
// of its old groups.
void FaultInjector::refuse_lost(const InterceptedCall& intercepted) {
  for (const auto& [lost, loss] : losses_) {
    const auto& ranks = intercepted.group.ranks;
    if (std::find(ranks.begin(), ranks.end(), lost) == ranks.end()) continue;
    const bool was_there = intercepted.group.id < loss.groups;
    const auto fail = [&](const std::string& why) {
      const auto text = fmt::format("{} {}", title_of(intercepted.call, intercepted.sequence, intercepted.group), why);
      note_refused(intercepted, text);
      throw CommError(text, intercepted.group.name, intercepted.sequence, {lost});
    };
    if (was_there && lost == intercepted.rank) {
      fail(fmt::format(
          "failed: rank {} has begun again and is no longer a member of this group; make a new group with it", lost));
    }
    if (loss.connections_broke && (was_there || loss.is_down)) fail(comm::failed_as_closed_by(lost));
  }
}

}  // namespace rehearse::sim
