// SPDX-License-Identifier: BSD-3-Clause
#include "report_builder.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <rehearse/comm/errors.h>
#include <rehearse/exec/rank_list.h>
#include <rehearse/sim/format_time.h>

#include "report/call_places.h"
#include "report/event_lines.h"
#include "report/failure_text.h"
#include "report/standstill.h"

namespace rehearse::sim {
namespace {

Difference::Side side_of(const comm::Mismatch::Side& side) {
  return {side.alike, side.fingerprint, side.where.describe()};
}

Difference difference_of(const comm::Mismatch& mismatch) {
  Difference difference;
  difference.group = mismatch.group;
  difference.sequence = mismatch.sequence;
  difference.first = side_of(mismatch.first);
  difference.second = side_of(mismatch.second);
  for (const auto& side : mismatch.others) difference.others.push_back(side_of(side));
  for (const auto& field : mismatch.fields) difference.fields.push_back({field.name, field.first, field.second});
  return difference;
}

class Builder {
 public:
  Builder(const WorldOptions& options, const RunRecord& record) : options_(options), record_(record) {}

  Report build() {
    facts();
    rank_lines();
    verdict();
    for (const auto& mismatch : record_.mismatches) report_.differences.push_back(difference_of(mismatch));
    if (report_.verdict != Verdict::ok) last_operations();
    report_.call_places = calls_from_different_places(record_, report_.verdict);
    return std::move(report_);
  }

 private:
  const exec::RunOutcome& outcome() const { return record_.outcome; }

  void facts() {
    report_.ranks = options_.ranks;
    report_.seed = options_.seed;
    report_.schedule = options_.schedule == Schedule::random ? "random" : "round_robin";
    report_.version = REHEARSE_VERSION;
    report_.identity = record_.decisions.hash() ^ (record_.events.hash() * 0x9E3779B97F4A7C15ull);
    report_.decisions = record_.decisions.decisions().size();
    report_.switches = outcome().switches;
    report_.operations = record_.events.size();
    report_.end_time = outcome().end_time;
    report_.checks = record_.checks;
  }

  void verdict() {
    switch (outcome().ending) {
      case exec::Ending::all_returned:
        return returned();
      case exec::Ending::rank_failed:
        return rank_failed(outcome().failures.front());
      case exec::Ending::stopped:
        if (record_.mismatches.empty()) return set(Verdict::check_failed, outcome().stop_reason);
        return set(Verdict::mismatch, comm::to_string(record_.mismatches.front()));
      case exec::Ending::deadlock:
        return standstill();
      case exec::Ending::livelock:
        return livelock();
      case exec::Ending::step_budget:
        return set(Verdict::step_budget, outcome().stop_reason);
      case exec::Ending::interrupted:
        return interrupted();
    }
  }

  void set(Verdict verdict, std::string headline) {
    report_.verdict = verdict;
    report_.headline = std::move(headline);
  }

  void interrupted() {
    const auto returned = std::count(outcome().ranks.begin(), outcome().ranks.end(), exec::RankEnd::returned);
    set(Verdict::interrupted, fmt::format("after {} switches, at {} of virtual time; {} of {} ranks had returned",
                                          outcome().switches, format_time(outcome().end_time), returned, options_.ranks));
  }

  // All bodies are over; a call that some rank never made is a mismatch all the same: nobody waited for it.
  void returned() {
    for (const auto& call : record_.pending) {
      if (call.waits_for.empty() || call.gave_up) continue;
      return set(Verdict::mismatch, fmt::format("{} was called by rank {} and never by {}; nobody waited for it",
                                                call.call, call.rank, describe_ranks(call.waits_for)));
    }
    for (const auto& group : record_.pending_groups) {
      return set(Verdict::mismatch, fmt::format("{} (\"{}\") was called by {} and never by {}", group.call, group.name,
                                                describe_ranks(group.called_by), describe_ranks(group.missing)));
    }
    set(Verdict::ok, fmt::format("{} rank{} returned after {} of virtual time{}", options_.ranks,
                                 options_.ranks == 1 ? "" : "s", format_time(outcome().end_time), given_up()));
  }

  // A program may catch a timeout and go on; the call that it left behind is worth a word all the same.
  std::string given_up() const {
    std::string text;
    int others = -1;
    for (const auto& call : record_.pending) {
      if (!call.gave_up || call.waits_for.empty() || ++others > 0) continue;
      text = fmt::format("; rank {} gave up {}, to which {} never came", call.rank, call.call,
                         describe_ranks(call.waits_for));
    }
    if (others > 0) text += fmt::format(", and {} more", others);
    return text;
  }

  static bool is_timeout(const exec::RankFailure& failure) {
    return is_a<TimeoutError>(failure) || is_a<c10::DistStoreError>(failure);
  }

  void rank_failed(const exec::RankFailure& failure) {
    if (!record_.mismatches.empty()) return set(Verdict::mismatch, comm::to_string(record_.mismatches.front()));
    if (is_timeout(failure)) {
      return outcome().hang.empty() ? timed_out(failure) : standstill();
    }
    const auto verdict = is_a<CheckError>(failure) ? Verdict::check_failed : Verdict::rank_failed;
    const auto before = after_a_timeout(failure, record_.events);
    set(verdict, fmt::format("rank {}: {}{}", failure.rank, gist_of(failure), before));
  }

  // Nobody could go on. Where the culprit polls, the wait of the others is only what ended the world.
  void standstill() {
    Standstill all(options_.ranks);
    for (const auto& fiber : outcome().hang.empty() ? outcome().blocked : outcome().hang) all.add(fiber, place_of(fiber));
    auto story = all.tell();
    report_.wait_cycle = std::move(story.wait_cycle);
    const bool livelock = story.polled || outcome().ending == exec::Ending::livelock;
    if (story.headline.empty()) story.headline = outcome().stop_reason;
    story.headline += unmatched_send(record_.pending);
    set(livelock ? Verdict::livelock : Verdict::deadlock, std::move(story.headline));
  }

  // A timeout fired while somebody could still have come.
  void timed_out(const exec::RankFailure& failure) {
    Standstill all(options_.ranks);
    bool missing_ranks = false;
    for (const auto& fiber : outcome().blocked) all.add(fiber, place_of(fiber));
    for (const auto& call : record_.pending) {
      const RankLine& line = line_of(call.rank);
      if (!call.gave_up || line.state != "failed") continue;
      all.add({call.rank, call.call, call.waits_for, line.where});
      missing_ranks |= call.rank == failure.rank && !call.waits_for.empty();
    }
    // What went on elsewhere would not have helped.
    const bool hopeless = missing_ranks && all.is_hopeless(failure.rank, report_.rank_lines);
    auto story = all.tell(hopeless ? std::nullopt : std::optional(failure.at));
    if (!missing_ranks) {
      story.headline = fmt::format("rank {}: {}", failure.rank, gist_of(failure));
      const bool of_store = is_a<c10::DistStoreError>(failure);
      if (of_store) story.headline += all.others_on_the_way(failure.rank, failure.at);
    }
    report_.wait_cycle = std::move(story.wait_cycle);
    set(hopeless ? Verdict::deadlock : Verdict::timeout, story.headline + unmatched_send(record_.pending));
  }

  // Who polls for what, if a call that nobody joins is behind it.
  void livelock() {
    for (const auto& fiber : outcome().blocked) {
      if (fiber.waits_for.empty()) continue;
      return looks_in_vain(fiber.rank, fiber.call, fiber.waits_for, place_of(fiber));
    }
    for (const auto& call : record_.pending) {
      const RankLine& line = line_of(call.rank);
      if (call.waits_for.empty() || call.gave_up || line.state == "returned" || line.state == "failed") continue;
      return looks_in_vain(call.rank, call.call, call.waits_for, line.where);
    }
    standstill();
    report_.headline += ": " + outcome().stop_reason;
  }

  void looks_in_vain(int rank, const std::string& call, const std::vector<int>& waits_for, const std::string& where) {
    set(Verdict::livelock, fmt::format("rank {} looks for the end of {}{}{}, for which {} never came: {}", rank, call,
                                       where.empty() ? "" : " at ", where, describe_ranks(waits_for),
                                       outcome().stop_reason));
  }

  // Where it was when the world ended; one that went on from a hang was there then.
  std::string place_of(const exec::BlockedFiber& fiber) {
    const auto place = places_.find({fiber.rank, fiber.fiber_of_rank});
    return place != places_.end() ? place->second : line_of(fiber.rank).where;
  }

  void rank_lines() {
    report_.rank_lines.resize(static_cast<std::size_t>(options_.ranks));
    for (int rank = 0; rank < options_.ranks; ++rank) {
      RankLine& line = report_.rank_lines[static_cast<std::size_t>(rank)];
      line.rank = rank;
      line.at = outcome().ended_at[static_cast<std::size_t>(rank)];
      line.state = outcome().ranks[static_cast<std::size_t>(rank)] == exec::RankEnd::returned ? "returned" : "stopped";
    }
    // Backwards, so that a rank's main fiber has the last word over its helpers.
    for (auto fiber = outcome().blocked.rbegin(); fiber != outcome().blocked.rend(); ++fiber) blocked_line(*fiber);
    for (const auto& failure : outcome().failures) failed_line(failure);
    // A failure of another kind has its own story.
    if (!outcome().failures.empty() && !is_timeout(outcome().failures.front())) return;
    for (const auto& fiber : outcome().hang) hang_line(fiber);
  }

  void last_operations() {
    for (RankLine& line : report_.rank_lines) {
      if (const auto* const last = record_.events.last_completed(line.rank)) line.last = record_.events.title(*last);
    }
    report_.last_events = last_event_lines(record_.events);
  }

  RankLine& line_of(int rank) { return report_.rank_lines[static_cast<std::size_t>(rank)]; }

  void blocked_line(const exec::BlockedFiber& fiber) {
    RankLine& line = line_of(fiber.rank);
    line.at = outcome().end_time;
    line.where = places_[{fiber.rank, fiber.fiber_of_rank}] = fiber.where.describe();
    if (!fiber.was_blocked || fiber.waits_on.empty()) return;
    line.state = "blocked";
    line.doing = fiber.waits_on;
    line.waits_for = fiber.waits_for;
  }

  void failed_line(const exec::RankFailure& failure) {
    RankLine& line = line_of(failure.rank);
    line.state = "failed";
    line.at = failure.at;
    line.doing = text_of(failure);
    line.where = failure.thrown_at.describe();
    if (!is_a<MismatchError>(failure) || record_.mismatches.empty()) return;
    // Ranks that meet in different calls all stand in them; what is told below is not repeated here.
    const auto& mismatch = record_.mismatches.front();
    line.state = "blocked";
    const bool of_new_group = mismatch.kind == comm::Mismatch::Kind::new_group;
    const auto call = of_new_group ? fmt::format("new_group #{}", mismatch.sequence)
                                   : record_.events.title(*record_.events.last(failure.rank));
    line.doing = call + " (its ranks disagree)";
  }

  // A rank whose timeout ended the hang, or that was about to look again, was blocked as well: that is what the reader
  // wants to know of it.
  void hang_line(const exec::BlockedFiber& fiber) {
    RankLine& line = line_of(fiber.rank);
    const bool still = line.state == "blocked" && line.doing == fiber.waits_on;
    if (fiber.fiber_of_rank != 0 || (line.state != "failed" && line.state != "stopped" && !still)) return;
    line.state = "blocked";
    line.at = outcome().hang_began;
    line.doing = fiber.waits_on;
    line.waits_for = fiber.waits_for;
  }

  const WorldOptions& options_;
  const RunRecord& record_;
  Report report_;
  std::map<std::pair<int, std::uint32_t>, std::string> places_;  // of the blocked, by rank and fiber_of_rank
};

}  // namespace

Report build_report(const WorldOptions& options, const RunRecord& record) { return Builder(options, record).build(); }

}  // namespace rehearse::sim
