// SPDX-License-Identifier: BSD-3-Clause
#include "run_records.h"

#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

#include <c10/util/Exception.h>
#include <rehearse/comm/errors.h>
#include <rehearse/job/rank_context.h>
#include <rehearse_internal/job/lost_rank.h>

#include "exec/call_site/failure_text.h"

namespace rehearse::real {
namespace {

// Another rank's exception; this process knows only its text.
std::exception_ptr error_of(const JobOutcome::Failure& failure) {
  const auto& what = failure.end.what;
  switch (failure.end.kind) {
    case FailureKind::check:
      return std::make_exception_ptr(CheckError(what));
    case FailureKind::timeout:
      return std::make_exception_ptr(TimeoutError(what, "", 0, failure.waits_for));
    case FailureKind::store:
      return std::make_exception_ptr(c10::DistStoreError(what, nullptr));
    case FailureKind::lost:
      return std::make_exception_ptr(LostRankError(what));
    case FailureKind::plain:
    case FailureKind::communication:
      break;
  }
  return std::make_exception_ptr(std::runtime_error(what));
}

exec::RankFailure failure_of(const JobOutcome::Failure& stated, const std::optional<exec::RankFailure>& own) {
  exec::RankFailure failure = own && own->rank == stated.rank ? *own : exec::RankFailure{};
  failure.rank = stated.rank;
  failure.at = stated.end.at;
  // If the coordinator decided that the rank has failed, because of a long wait or silence, the rank itself saw only
  // the end of its world. If the rank's own call timed out, only the coordinator knows which ranks were missing.
  const bool overdue = !stated.gave_up.empty();
  const bool by_coordinator = overdue || stated.end.kind == FailureKind::lost;
  if (failure.error == nullptr || by_coordinator) {
    failure.error = error_of(stated);
    failure.what = stated.end.what;
  }
  if (overdue) failure.gave_up = exec::GivenUpWait{stated.gave_up, stated.waits_for, stated.end.at};
  return failure;
}

// If `stated` is about this process's own rank, the rank waited at the place where RankAborted was thrown.
exec::BlockedFiber fiber_of(const JobOutcome::Blocked& stated, const std::optional<exec::RankFailure>& own) {
  exec::BlockedFiber fiber;
  fiber.rank = stated.rank;
  fiber.was_blocked = stated.was_blocked;
  fiber.waits_on = stated.waits_on;
  fiber.call = stated.call;
  fiber.waits_for = stated.waits_for;
  if (own && own->rank == stated.rank) fiber.where = own->thrown_at;
  return fiber;
}

}  // namespace

RankEnded ended_by_exception(bool of_communication, VirtualTime at) {
  RankEnded ended{exec::RankEnd::failed, of_communication ? FailureKind::communication : FailureKind::plain, "", at};
  try {
    throw;
  } catch (const RankAborted& error) {
    ended.end = exec::RankEnd::aborted;
    ended.what = error.what();
  } catch (const CheckError& error) {
    ended.kind = FailureKind::check;
    ended.what = error.what();
  } catch (const TimeoutError& error) {
    ended.kind = FailureKind::timeout;
    ended.what = error.what_without_backtrace();
  } catch (const c10::DistStoreError& error) {
    ended.kind = FailureKind::store;
    ended.what = error.what_without_backtrace();
  } catch (const c10::Error& error) {
    ended.what = error.what_without_backtrace();
  } catch (...) {
    ended.what = exec::failure_text(std::current_exception());
  }
  return ended;
}

void note_outcome(const JobOutcome& job_outcome, const std::optional<exec::RankFailure>& own, VirtualTime now,
                  RunRecord& record) {
  auto& outcome = record.outcome;
  outcome.ending = job_outcome.ending;
  outcome.stop_reason = job_outcome.why;
  outcome.ranks = job_outcome.ranks;
  outcome.ended_at = job_outcome.ended_at;
  for (const auto& failure : job_outcome.failures) outcome.failures.push_back(failure_of(failure, own));
  for (const auto& blocked : job_outcome.blocked) outcome.blocked.push_back(fiber_of(blocked, own));
  outcome.end_time = now;
  record.mismatches = job_outcome.mismatches;
  record.pending = job_outcome.pending;
  record.pending_groups = job_outcome.pending_groups;
  record.short_messages = job_outcome.short_messages;
}

}  // namespace rehearse::real
