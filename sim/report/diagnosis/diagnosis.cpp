// SPDX-License-Identifier: BSD-3-Clause
#include "report/diagnosis/diagnosis.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <rehearse/comm/errors.h>
#include <rehearse/job/rank_context.h>
#include <rehearse_internal/formatting/rank_list.h>
#include <rehearse_internal/job/lost_rank.h>
#include <rehearse_internal/sim/format_time.h>

#include "report/diagnosis/compile_diagnosis.h"
#include "report/diagnosis/headline_parts.h"
#include "report/diagnosis/standstill.h"
#include "report/ranks/rank_failure_text.h"
#include "report/ranks/timeouts.h"

namespace rehearse::sim {
namespace {

class VerdictFinder {
 public:
  VerdictFinder(const WorldOptions& options, const RunRecord& record, const RankOutcomes& ends)
      : options_(options), record_(record), ends_(ends), failures_(without_destructors(record.outcome.failures)) {}

  Diagnosis find() {
    verdict();
    diagnosis_.drifts = drifts_of(record_, diagnosis_.verdict, ends_.places());
    // A wait or a mismatch may follow from a call that a rank left out long before, or from a function that a rank
    // compiled alone. A wait may also follow from a group that a rank did not make.
    CauseText since = compile_cause(record_, ends_, diagnosis_.verdict);
    since += group_left_out();
    if (!diagnosis_.drifts.empty()) {
      const auto& [cause, text] = diagnosis_.drifts.front();
      since += {fmt::format("{}{}; ", text, faults_behind(cause, record_.faults)), {cause}};
    }
    since += left_by_the_ended();
    since += diagnosis_.headline;
    // An exception that was unwinding a rank may have started everything. But if a rank's exception ended the world,
    // the exceptions of other ranks are not its cause.
    const bool others = diagnosis_.verdict == Verdict::rank_failed && !failures_.front().unwinding;
    diagnosis_.headline = others ? CauseText() : unwinding_first(record_, ends_.places());
    if (is_of_waits()) diagnosis_.headline += standing_cuts_text(record_.faults, options_.ranks, cut_until());
    diagnosis_.headline += crash_before(since);
    diagnosis_.headline += since;
    return std::move(diagnosis_);
  }

 private:
  const exec::RunOutcome& outcome() const { return record_.outcome; }

  void verdict() {
    switch (outcome().ending) {
      case exec::Ending::all_returned:
        return returned();
      case exec::Ending::rank_failed:
        return rank_failed(failures_.front());
      case exec::Ending::stopped:
        if (record_.mismatches.empty()) return found_at_fault(outcome().stop_reason, record_.blamed);
        return set(Verdict::mismatch, {comm::to_string(record_.mismatches.front())});
      case exec::Ending::deadlock:
        return standstill();
      case exec::Ending::livelock:
        return livelock();
      case exec::Ending::step_budget:
        return set(Verdict::step_budget,
                   {fmt::format("{} between ranks{}; look for an endless loop there or, if the program needs more "
                                "switches, raise [world] steps_max (WorldOptions::steps_max)",
                                outcome().stop_reason, still_running(ends_.lines()))});
      case exec::Ending::interrupted:
        return interrupted();
    }
  }

  void set(Verdict verdict, CauseText headline) {
    diagnosis_.verdict = verdict;
    diagnosis_.headline = std::move(headline);
  }

  void found_at_fault(std::string headline, const std::vector<int>& ranks) {
    set(Verdict::check_failed, {std::move(headline)});
    if (!ranks.empty()) diagnosis_.headline.causes.push_back({Cause::Kind::found_at_fault, ranks});
  }

  void interrupted() {
    const auto returned = std::ranges::count(outcome().ranks, exec::RankEnd::returned);
    const auto end = format_time(outcome().end_time);
    const auto when = is_real() ? fmt::format("at {} of real time", end)
                                : fmt::format("after {} switches, at {} of virtual time", outcome().switches, end);
    set(Verdict::interrupted, {fmt::format("{}{}; {} of {} ranks had returned", when, still_running(ends_.lines()),
                                           returned, options_.ranks)});
  }

  bool is_real() const { return options_.mode == Mode::real; }

  bool is_of_waits() const { return rehearse::is_of_waits(diagnosis_.verdict); }

  // Names crashed ranks if the rest of the headline does not, because all other ranks may wait for a call that a crash
  // left under way.
  CauseText crash_before(const CauseText& rest) const {
    if (!is_of_waits() || crashed().empty() || rest.has(Cause::Kind::crashed)) return {};
    std::vector<int> ranks;
    for (const auto& [rank, call] : crashed()) ranks.push_back(rank);
    auto text = describe_ranks(ranks) + " crashed; ";
    return {std::move(text), {{Cause::Kind::crashed, std::move(ranks)}}};
  }

  // A rank that ended may have left a note why it never made the awaited call. Returns that note as text: "on rank 3 no
  // gradient came for ...; ".
  CauseText left_by_the_ended() const {
    if (!is_of_waits()) return {};
    for (const auto& [text, of] : record_.notes) {
      const std::vector<int> ranks(of.begin(), of.end());
      const auto& causes = diagnosis_.headline.causes;
      const bool named = std::ranges::any_of(
          causes, [&](const Cause& cause) { return cause.kind == Cause::Kind::ended && cause.ranks == ranks; });
      if (named) return {fmt::format("on {} {}; ", describe_ranks(ranks), text)};
    }
    return {};
  }

  // The time at which the wait in the headline ended.
  VirtualTime cut_until() const { return failures_.empty() ? outcome().end_time : failures_.front().at; }

  // All ranks have returned or crashed. A call that some rank never made is a mismatch even if nobody waited for it.
  // The exceptions are calls that the program gave up, or left behind after a failure, and calls for which only crashed
  // ranks are missing.
  void returned() {
    if (static_cast<int>(crashed().size()) == options_.ranks) return set(Verdict::crashed, {"all ranks crashed"});
    for (const auto& call : record_.pending) {
      if (call.waits_for.empty() || call.gave_up || call.left_behind || is_of_crashed(call.waits_for)) continue;
      diagnosis_.absence = absence_from(call, record_, ends_);
      return set(Verdict::mismatch, never_met(call));
    }
    if (!record_.pending_groups.empty()) return set(Verdict::mismatch, left_out(record_.pending_groups.front()));
    if (!record_.findings.empty()) return set(Verdict::check_failed, {record_.findings.front().headline});
    if (options_.compile_divergence == CompileDivergence::fail) {
      const auto alone = compile_remarks(record_, ends_.places());
      if (!alone.empty()) return found_at_fault(alone.front(), compiler::divergences(record_.journal).front().compiled);
    }
    for (const auto& fault : record_.faults) {
      if (fault.why_not.empty() || fault.optional) continue;
      return set(Verdict::fault_not_fired,
                 {fmt::format("{}: {}{}", fault.fault, fault.times > 0 ? "did not fire " : "", fault.why_not)});
    }
    set(Verdict::ok, {ranks_returned(options_.ranks - static_cast<int>(crashed().size()), crashed_too(),
                                     outcome().end_time, is_real() ? "real" : "virtual") +
                      given_up({})});
  }

  const std::map<int, std::string>& crashed() const { return record_.crashed; }

  bool is_of_crashed(const std::vector<int>& ranks) const {
    return std::ranges::all_of(ranks, [&](int rank) { return crashed().contains(rank); });
  }

  std::string crashed_too() const {
    std::vector<int> ranks;
    for (const auto& [rank, call] : crashed()) ranks.push_back(rank);
    return ranks.empty() ? "" : fmt::format(", {} crashed,", describe_ranks(ranks));
  }

  // Describes a call that other ranks, or the receiver of a send, never made.
  CauseText never_met(const comm::PendingOperation& call) const {
    const auto place = ends_.place_of(call);
    const auto where = place.at();
    const auto* const end =
        call.timed_out ? "it timed out, and the program never asked for its result" : "nobody waited for it";
    // A send that buffering has completed is over for the program, which may have waited for it.
    const bool has_completed = call.record_id == comm::Event::kNotRecorded;
    if (call.is_send) {
      return {fmt::format("{} of rank {}{} was never received{}{}", call.call, call.rank, where,
                          has_completed ? "" : "; ", has_completed ? "" : end),
              {{Cause::Kind::unmatched, {call.rank}, call.call, place}}};
    }
    std::vector<int> callers;
    for (const auto& other : record_.pending) {
      if (other.call == call.call) callers.push_back(other.rank);
    }
    std::ranges::sort(callers);
    return {fmt::format("{} was called by {}{} and never by {}; {}", call.call, describe_ranks(callers), where,
                        describe_ranks(call.waits_for), end),
            {{Cause::Kind::left_out, call.waits_for, call.call, place, callers}}};
  }

  CauseText left_out(const comm::PendingGroup& group) {
    diagnosis_.absence = absence_from(group, record_, ends_);
    const auto place = ends_.places().place(group.where);
    return {fmt::format("{} (\"{}\"){} was called by {} and never by {}", group.call, group.name, place.at(),
                        describe_ranks(group.called_by), describe_ranks(group.missing)),
            {{Cause::Kind::left_out, group.missing, group.call, place, group.called_by}}};
  }

  // For example "new_group #2 ("pair") was called by ranks 0-1 and never by rank 2; ". Takes the first group that
  // lacks a rank which has returned, or a rank for which a call on the group waits.
  CauseText group_left_out() {
    if (!is_of_waits()) return {};
    for (const auto& group : record_.pending_groups) {
      const auto has_returned = [&](int rank) { return ends_.line_of(rank).state == RankOutcome::returned; };
      const bool for_good = std::ranges::any_of(group.missing, has_returned);
      if (!for_good && !is_awaited(group)) continue;
      auto told = left_out(group);
      told.text += "; ";
      return told;
    }
    return {};
  }

  bool is_awaited(const comm::PendingGroup& group) const {
    const auto is_missing = [&](int rank) { return std::ranges::find(group.missing, rank) != group.missing.end(); };
    return std::ranges::any_of(record_.pending, [&](const auto& call) {
      return call.group == group.name && std::ranges::any_of(call.waits_for, is_missing);
    });
  }

  // A program may catch a timeout and go on. The headline still mentions the call that the program gave up.
  std::string given_up(const CauseText& headline) const {
    std::string text;
    int others = -1;
    for (const auto& call : record_.pending) {
      const auto& told = headline.causes;
      const bool is_told = std::ranges::any_of(told, [&](const Cause& cause) { return cause.call == call.call; });
      if (!call.gave_up || call.waits_for.empty() || is_told || ++others > 0) continue;
      text = fmt::format("; rank {} gave up {}{}", call.rank, call.call, never_came(call, record_));
    }
    if (others > 0) text += fmt::format(", and {} more", others);
    return text;
  }

  // A rank's exception is the verdict unless it only follows from another cause. If calls do not match, some of them
  // throw, and if a rank waits for too long, its wait throws.
  void rank_failed(const exec::RankFailure& failure) {
    if (!record_.mismatches.empty()) return set(Verdict::mismatch, {comm::to_string(record_.mismatches.front())});
    if (is_timeout(failure)) {
      outcome().hang.empty() ? timed_out(root_of_timeout(failure, failures_)) : standstill();
      diagnosis_.headline.text += ended_by(outcome().failures.front());
      return;
    }
    const bool is_counted = !record_.memory.empty() && is_a<c10::OutOfMemoryError>(failure);
    const auto verdict = is_a<CheckError>(failure)      ? Verdict::check_failed
                         : is_a<LostRankError>(failure) ? Verdict::crashed
                         : is_counted                   ? Verdict::out_of_memory
                                                        : Verdict::rank_failed;
    if (verdict == Verdict::rank_failed && hung_unwinding(failure, outcome())) return standstill();
    auto told = failed(failure);
    told += timeout_before(failure, record_, ends_);
    told.text += other_failures(failure, failures_);
    set(verdict, std::move(told));
  }

  Standstill standstill_of(const std::vector<exec::BlockedFiber>& fibers) const {
    Standstill all(options_.ranks, record_.crashed);
    for (const auto& fiber : fibers) {
      all.add(fiber, ends_.place_of(fiber));
      if (const auto* const call = ends_.poll_of(fiber)) all.polls(fiber.rank, *call);
    }
    return all;
  }

  // Nobody could go on. If the culprit is a rank that polls, the verdict is a livelock. `hang` holds the waits before a
  // timeout ended the standstill, because by the end of the world the rank with the timeout has moved on.
  void standstill() {
    auto diagnosis = standstill_of(outcome().last_waits()).diagnose();
    diagnosis_.wait_cycle = std::move(diagnosis.wait_cycle);
    if (diagnosis.headline.text.empty()) diagnosis.headline.text = outcome().stop_reason;
    auto told = unmatched_send(record_.pending, ends_);
    told += diagnosis.headline;
    if (record_.crashed.empty()) told += send_awaited_elsewhere(record_.pending, ends_);
    const bool polls = diagnosis.polled || outcome().ending == exec::Ending::livelock;
    set(polls ? Verdict::livelock : Verdict::deadlock, std::move(told));
  }

  CauseText failed(const exec::RankFailure& failure) const {
    return {fmt::format("rank {}: {}", failure.rank, gist_of(failure)),
            {{Cause::Kind::failed,
              {failure.rank},
              failure.gave_up && is_timeout(failure) ? failure.gave_up->call : "",
              ends_.places().place(failure.thrown_at)}}};
  }

  // A timeout fired although some rank could still go on. Nobody knows whether the missing ranks were late or would
  // never have come, because the world ended first. Ranks whose own timeout fired are unwinding by now, so the waits
  // that they gave up are added to the waits of the others. If all waits from the failing rank on lead to ranks that
  // have returned or crashed, or form a ring, more time would not have helped: a deadlock. Otherwise it was a timeout,
  // and the headline says in the past tense what the culprits were doing when the timeout fired.
  void timed_out(const exec::RankFailure& failure) {
    Standstill all = standstill_of(outcome().blocked);
    bool missing_ranks = false;
    for (const auto& failed : failures_) {
      const auto* const wait = wait_behind(failed);
      if (wait == nullptr || wait->waits_for.empty()) continue;
      all.add({failed.rank, wait->call, wait->waits_for, ends_.places().place(failed.thrown_at)});
      missing_ranks |= failed.rank == failure.rank;
    }
    // In a real run, this process may not know the calls of the others.
    const auto awaited = missing_ranks && !is_real() ? awaited_in(*failure.gave_up, failure.rank, record_) : Awaited();
    const bool all_came = !awaited.came_late.empty() && awaited.others.empty();
    if (all_came) {
      return set(Verdict::timeout,
                 came_late(awaited.came_late, failure.gave_up->call, failure.gave_up->at, {failure.rank}));
    }
    const bool hopeless = missing_ranks && all.is_hopeless(failure.rank, ends_.lines());
    // Not failure.at: destructors may have waited, too, before the error left the rank.
    const auto until = missing_ranks ? failure.gave_up->at : failure.at;
    auto diagnosis = all.diagnose(hopeless ? std::nullopt : std::optional(until));
    if (!missing_ranks) {
      diagnosis.headline = failed(failure);
      const bool of_store = is_a<c10::DistStoreError>(failure);
      if (of_store) diagnosis.headline += all.others_on_the_way(failure.rank, until);
    }
    if (!hopeless && awaited.never_called && !awaited.others.empty())
      diagnosis.headline += never_called(awaited.others, failure.gave_up->call, failure.rank);
    if (!hopeless && !missing_ranks) diagnosis.headline.text += given_up(diagnosis.headline);
    diagnosis_.wait_cycle = std::move(diagnosis.wait_cycle);
    auto told = held_up(record_);
    if (told.text.empty()) told = unmatched_send(record_.pending, ends_);
    told += diagnosis.headline;
    if (hopeless && record_.crashed.empty()) told += send_awaited_elsewhere(record_.pending, ends_);
    const bool came_too_late = told.has(Cause::Kind::held_up) || !hopeless;
    set(came_too_late ? Verdict::timeout : Verdict::deadlock, std::move(told));
  }

  // Says who polls for what. Polling ranks are runnable, not blocked, so the wait-for graph does not contain them.
  // Takes the best evidence first: a loop of failing calls; then a fiber that is known to wait for ranks; then an
  // incomplete call of a rank that was still polling (work->isCompleted() in a loop); then the explanation for any
  // standstill.
  void livelock() {
    if (const auto& loop = outcome().failing_loop) {
      const auto& place = ends_.line_of(loop->rank).where;
      const auto last = loop->error.empty() ? "" : "; the last error: " + loop->error;
      return set(Verdict::livelock, {fmt::format("rank {} repeats failing calls forever{}{}: {}{}", loop->rank,
                                                 place.empty() ? "" : ",", place.at(), outcome().stop_reason, last),
                                     {{Cause::Kind::polls, {loop->rank}, "", place}}});
    }
    const auto* const fiber = looking_fiber();
    if (fiber != nullptr && fiber->waits_for.empty()) return standstill_of_a_livelock();
    if (fiber != nullptr) return looks_in_vain(fiber->rank, fiber->call, fiber->waits_for, ends_.place_of(*fiber));
    for (const auto& call : record_.pending) {
      const RankLine& line = ends_.line_of(call.rank);
      if (call.record_id == comm::Event::kNotRecorded) continue;  // a buffered send, which has completed
      if (call.waits_for.empty() || call.gave_up || call.timed_out) continue;
      if (line.state == RankOutcome::returned || line.state == RankOutcome::failed || merely_waits(call.rank)) continue;
      return looks_in_vain(call.rank, call.call, call.waits_for, line.where);
    }
    standstill_of_a_livelock();
  }

  void standstill_of_a_livelock() {
    standstill();
    if (diagnosis_.headline.text != outcome().stop_reason)
      diagnosis_.headline.text += fmt::format(" ({})", outcome().stop_reason);
  }

  // Prefers the fiber of the rank whose wait timed out last and began again; otherwise takes a fiber that polls for
  // ranks.
  const exec::BlockedFiber* looking_fiber() const {
    const exec::BlockedFiber* waits_for_ranks = nullptr;
    for (const auto& fiber : outcome().blocked) {
      if (fiber.rank == outcome().last_time_out) return &fiber;
      if (waits_for_ranks == nullptr && fiber.polls && !fiber.waits_for.empty()) waits_for_ranks = &fiber;
    }
    return waits_for_ranks;
  }

  bool merely_waits(int rank) const {
    return std::ranges::any_of(outcome().blocked, [rank](const exec::BlockedFiber& fiber) {
      return fiber.rank == rank && fiber.fiber_of_rank == 0 && fiber.was_blocked && !fiber.polls &&
             !fiber.waits_for.empty();
    });
  }

  void looks_in_vain(int rank, const std::string& call, const std::vector<int>& waits_for, const Place& where) {
    const auto* const repeats = outcome().last_time_out ? "repeats its wait for" : "polls";
    CauseText told{
        fmt::format("rank {} {} {} forever{}{}: {} {} that call ({})", rank, repeats, call, where.empty() ? "" : ",",
                    where.at(), describe_ranks(waits_for), absence_of(waits_for, ends_), outcome().stop_reason),
        {{Cause::Kind::polls, {rank}, call, where}}};
    if (have_all_returned(waits_for, ends_)) told.causes.push_back({Cause::Kind::ended, waits_for, call, {}, {rank}});
    set(Verdict::livelock, std::move(told));
  }

  const WorldOptions& options_;
  const RunRecord& record_;
  const RankOutcomes& ends_;
  const std::vector<exec::RankFailure> failures_;
  Diagnosis diagnosis_;
};

}  // namespace

Diagnosis find_verdict(const WorldOptions& options, const RunRecord& record, const RankOutcomes& ends) {
  return VerdictFinder(options, record, ends).find();
}

}  // namespace rehearse::sim
