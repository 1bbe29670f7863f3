// SPDX-License-Identifier: BSD-3-Clause
#include "report/ranks/rank_outcomes.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <rehearse/comm/errors.h>
#include <rehearse_internal/comm/connection_text.h>

#include "report/ranks/rank_failure_text.h"
#include "report/ranks/timeouts.h"

namespace rehearse::sim {
namespace {

// The ranks whose call differs from the call of `rank`, ascending. The report says that `rank` waits for them, even if
// its own call came last.
std::vector<int> opponents_of(int rank, const comm::Mismatch& mismatch) {
  std::vector<int> opponents;
  const auto add = [&](const comm::Mismatch::Side& side) {
    if (std::find(side.alike.begin(), side.alike.end(), rank) != side.alike.end()) return;
    opponents.insert(opponents.end(), side.alike.begin(), side.alike.end());
  };
  add(mismatch.first);
  add(mismatch.second);
  for (const auto& side : mismatch.others) add(side);
  std::sort(opponents.begin(), opponents.end());
  return opponents;
}

// The line shows this call instead of the error with which the rank ended.
void is_in(std::string call, RankLine& line) {
  line.doing = std::move(call);
  line.gave_up_on.clear();
  line.lost.clear();
}

}  // namespace

RankOutcomes::RankOutcomes(int ranks, const RunRecord& record, const Places& places)
    : record_(record),
      places_known_(places),
      all_failures_(without_destructors(record.outcome.failures)),
      lines_(static_cast<std::size_t>(ranks)) {
  const exec::RunOutcome& outcome = record.outcome;
  for (const auto& call : record.pending) {
    const auto* const event = record.events.find(call.is_send ? call.sent_as : call.record_id);
    if (event != nullptr) calls_.try_emplace({call.rank, call.call}, &record.events.call_site(*event));
  }
  for (int rank = 0; rank < ranks; ++rank) {
    RankLine& line = line_of(rank);
    line.rank = rank;
    line.at = outcome.ended_at[static_cast<std::size_t>(rank)];
    line.state = outcome.ranks[static_cast<std::size_t>(rank)] == exec::RankEnd::returned ? RankOutcome::returned
                                                                                          : RankOutcome::stopped;
  }
  // Go backwards, so that a rank's main fiber overrides its helper fibers.
  for (auto fiber = outcome.blocked.rbegin(); fiber != outcome.blocked.rend(); ++fiber)
    blocked(root_of(*fiber, outcome.blocked));
  for (const auto& failure : all_failures_) {
    if (outcome.ending == exec::Ending::rank_failed || !follows_from_the_end(failure)) failed(failure);
  }
  for (const auto& [rank, call] : record.crashed) {
    is_in(call, line_of(rank));
    line_of(rank).state = RankOutcome::crashed;
  }
  // If the first failure is no timeout, it explains the run, and the hang does not matter.
  if (!all_failures_.empty() && !is_timeout(all_failures_.front()) && !hung_unwinding(all_failures_.front(), outcome))
    return;
  for (const auto& fiber : outcome.hang) {
    if (fiber.fiber_of_rank == 0) hung(root_of(fiber, outcome.hang));
  }
}

Place RankOutcomes::place_of(const exec::BlockedFiber& fiber) const {
  // A fiber of a hang may come without its place. Then take the fiber's place when the world ended.
  if (!fiber.where.empty()) return with_call(places_known_.place(fiber.where), fiber.rank, fiber.call);
  const auto place = places_.find({fiber.rank, fiber.fiber_of_rank});
  if (place != places_.end()) return place->second;
  const auto failure = failures_.find(fiber.rank);
  if (failure == failures_.end() || !failure->second->gave_up) return {};
  if (failure->second->gave_up->call != fiber.call) return {};
  return with_call(places_known_.place(failure->second->thrown_at), fiber.rank, fiber.call);
}

Place RankOutcomes::place_of(const comm::PendingOperation& call) const {
  const auto made = calls_.find({call.rank, call.call});
  return made != calls_.end() ? places_known_.place(*made->second) : Place();
}

const exec::Wait* RankOutcomes::poll_of(const exec::BlockedFiber& fiber) const {
  const auto polls = record_.polls.find({fiber.rank, fiber.fiber_of_rank});
  const bool waits_for_others = fiber.was_blocked && fiber.any_rank;
  const bool polls_unknown = fiber.polls && fiber.call == fiber.waits_on;
  const bool pauses = (!fiber.polls || polls_unknown) && !waits_for_others && fiber.waits_for.empty();
  return pauses && polls != record_.polls.end() ? &polls->second : nullptr;
}

std::string RankOutcomes::doing_of(const exec::BlockedFiber& fiber) const {
  const auto* const polled = poll_of(fiber);
  if (polled == nullptr) return fiber.waits_on;
  return fiber.polls ? polled->waits_on : fmt::format("{} between polls in {}", fiber.waits_on, polled->waits_on);
}

// A rank may make an asynchronous call at one place and wait for it at another.
Place RankOutcomes::with_call(Place place, int rank, const std::string& call) const {
  const auto made = calls_.find({rank, call});
  if (made == calls_.end() || place.empty()) return place;
  const auto where = places_known_.place(*made->second);
  // Add nothing if both places are the same line, even if the names of their functions differ.
  const auto line_of = [](const Place& known) { return known.text.substr(0, known.text.find(" in ")); };
  if (where.empty() || line_of(where) == line_of(place)) return place;
  place.text += ", called" + where.at();
  return place;
}

// All fibers are in one list.
const exec::BlockedFiber& RankOutcomes::root_of(const exec::BlockedFiber& fiber,
                                                const std::vector<exec::BlockedFiber>& all) const {
  const auto waits_for_itself = [](const exec::BlockedFiber& each) {
    return each.waits_for.size() == 1 && each.waits_for.front() == each.rank;
  };
  if (!waits_for_itself(fiber)) return fiber;
  const auto root = std::find_if(all.begin(), all.end(), [&](const exec::BlockedFiber& each) {
    const bool explains =
        each.waits_for.empty() ? each.polls || poll_of(each) != nullptr : each.was_blocked && !waits_for_itself(each);
    return each.rank == fiber.rank && explains;
  });
  return root == all.end() ? fiber : *root;
}

void RankOutcomes::blocked(const exec::BlockedFiber& fiber) {
  RankLine& line = line_of(fiber.rank);
  line.at = record_.outcome.end_time;
  line.where = places_[{fiber.rank, fiber.fiber_of_rank}] =
      with_call(places_known_.place(fiber.where), fiber.rank, fiber.call);
  if (fiber.unwinding) unwound(*fiber.unwinding, line);
  const auto* const polled = poll_of(fiber);
  if (!fiber.was_blocked || fiber.waits_on.empty()) {
    if (polled != nullptr) line.doing = "polling with pauses in " + polled->waits_on;
    return;
  }
  line.state = RankOutcome::blocked;
  line.doing = doing_of(fiber);
  line.waits_for = fiber.waits_for;
}

void RankOutcomes::failed(const exec::RankFailure& failure) {
  RankLine& line = line_of(failure.rank);
  line.state = RankOutcome::failed;
  line.at = failure.at;
  line.doing = text_of(failure);
  line.where = places_known_.place(failure.thrown_at);
  line.gave_up_on = given_up_on(failure);
  if (const auto rank = comm::closed_by(line.doing)) line.lost = {*rank};
  failures_[failure.rank] = &failure;
  if (!is_a<MismatchError>(failure) || record_.mismatches.empty()) return;
  mismatched(line);
}

// If the calls of several ranks do not match, each rank counts as blocked in its own call.
void RankOutcomes::mismatched(RankLine& line) {
  const auto& mismatch = record_.mismatches.front();
  line.state = RankOutcome::blocked;
  const bool of_new_group = mismatch.kind == comm::Mismatch::Kind::new_group;
  const auto call =
      of_new_group ? comm::creation_title(mismatch) : record_.events.title(*record_.events.last(line.rank));
  is_in(call + " (the ranks' calls do not match)", line);
  line.waits_for = opponents_of(line.rank, mismatch);
}

// The world ended while destructors of the rank ran. If the destructors ran because the rank's call did not match the
// other ranks' calls, the reader wants to see that call, not the destructor.
void RankOutcomes::unwound(const exec::Unwinding& unwinding, RankLine& line) {
  exec::RankFailure failure;
  failure.error = unwinding.error;
  const bool has_call = record_.events.last(line.rank) != nullptr;
  if (!is_a<MismatchError>(failure) || record_.mismatches.empty() || !has_call) return;
  line.where = places_known_.place(unwinding.thrown_at);
  mismatched(line);
}

// A rank whose timeout ended the hang, or that was about to poll again, was blocked during the hang, too.
void RankOutcomes::hung(const exec::BlockedFiber& fiber) {
  RankLine& line = line_of(fiber.rank);
  // By the world's end, the details of the same wait may have changed, and the holder of its lock.
  const bool still =
      line.state == RankOutcome::blocked &&
      std::ranges::any_of(record_.outcome.blocked, [&](const exec::BlockedFiber& each) {
        const bool is_same = each.call == fiber.call || (!fiber.object.empty() && each.object == fiber.object);
        return each.rank == fiber.rank && each.fiber_of_rank == fiber.fiber_of_rank && each.was_blocked && is_same;
      });
  const bool was_ended = line.state == RankOutcome::failed || line.state == RankOutcome::stopped;
  if (!was_ended && !still) return;
  line.state = RankOutcome::blocked;
  line.at = record_.outcome.hang_began;
  line.where = place_of(fiber);
  is_in(doing_of(fiber), line);
  line.waits_for = fiber.waits_for;
}

}  // namespace rehearse::sim
