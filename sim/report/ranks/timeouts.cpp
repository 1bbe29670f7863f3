// SPDX-License-Identifier: BSD-3-Clause
#include "report/ranks/timeouts.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <rehearse/comm/errors.h>
#include <rehearse_internal/formatting/rank_list.h>

#include "report/ranks/rank_failure_text.h"

namespace rehearse::sim {
namespace {

bool was_over_before(const exec::RankFailure& failure) {
  return text_of(failure).find(kOverBefore) != std::string::npos;
}

// Nothing if the error is no TimeoutError. A store throws another type.
std::optional<TimeoutError> timeout_of(const exec::RankFailure& failure) {
  try {
    std::rethrow_exception(failure.error);
  } catch (const TimeoutError& error) {
    return error;
  } catch (...) {  // no TimeoutError
  }
  return std::nullopt;
}

// The error with which calls end, as a failure, if a destructor failed while that error unwound the stack.
std::optional<exec::RankFailure> error_before_the_end(const exec::RankFailure& failure) {
  const auto is_of_calls = [](const exec::RankFailure& each) {
    return is_timeout(each) || is_a<MismatchError>(each) || is_a<CommError>(each);
  };
  const bool is_of_wait = is_timeout(failure) || is_a<MismatchError>(failure);
  if (!failure.unwinding || is_of_wait) return std::nullopt;
  exec::RankFailure before = failure;
  before.error = failure.unwinding->error;
  before.what = failure.unwinding->what;
  before.thrown_at = failure.unwinding->thrown_at;
  before.unwinding.reset();
  return is_of_calls(before) ? std::optional(std::move(before)) : std::nullopt;
}

}  // namespace

std::vector<exec::RankFailure> without_destructors(std::vector<exec::RankFailure> failures) {
  for (auto& failure : failures) {
    if (auto before = error_before_the_end(failure)) failure = std::move(*before);
  }
  return failures;
}

bool follows_from_the_end(const exec::RankFailure& failure) {
  exec::RankFailure before;
  if (failure.unwinding) before.error = failure.unwinding->error;
  return before.error != nullptr && is_a<RankAborted>(before);
}

bool hung_unwinding(const exec::RankFailure& failure, const exec::RunOutcome& outcome) {
  return std::ranges::any_of(outcome.hang, [&](const exec::BlockedFiber& fiber) {
    return fiber.unwinding && fiber.unwinding->error == failure.error;
  });
}

std::string ended_by(const exec::RankFailure& failure) {
  if (!error_before_the_end(failure)) return "";
  return fmt::format(" (as the error of a wait unwound rank {}, a destructor failed: {})", failure.rank,
                     gist_of(failure));
}

const exec::GivenUpWait* wait_behind(const exec::RankFailure& failure) {
  if (!failure.gave_up || !is_timeout(failure) || was_over_before(failure)) return nullptr;
  const auto& wait = *failure.gave_up;
  // A wait for a key of the store waits for no particular rank.
  if (!timeout_of(failure)) return wait.waits_for.empty() ? &wait : nullptr;
  if (wait.at == failure.at) return &wait;
  // Time has passed since the wait. Either destructors waited before the error left the rank, or the program had caught
  // that timeout and fails because of another one.
  const auto text = text_of(failure);
  const auto missing = "missing " + describe_ranks(wait.waits_for);
  const bool is_of_call = text.find(wait.call + ": Timed out waiting ") != std::string::npos;
  const bool misses_the_same = wait.waits_for.empty() || text.find(missing) != std::string::npos;
  return is_of_call && misses_the_same ? &wait : nullptr;
}

std::vector<int> given_up_on(const exec::RankFailure& failure) {
  constexpr std::string_view kMissing = "; missing ";
  const auto text = text_of(failure);
  if (text.find(kMissing) == text.npos) return {};
  if (const auto own = timeout_of(failure)) return own->ranks();
  if (!failure.gave_up || failure.gave_up->waits_for.empty()) return {};
  const auto missing = fmt::format("{}{}", kMissing, describe_ranks(failure.gave_up->waits_for));
  return text.find(missing) == text.npos ? std::vector<int>() : failure.gave_up->waits_for;
}

namespace {

// The failure of a rank for which `failure` waited, if that rank's own wait timed out and waited for nobody: its
// transfer took too long. Null: there is none.
const exec::RankFailure* transfer_behind(const exec::RankFailure& failure, const std::vector<exec::RankFailure>& all) {
  const auto* const wait = wait_behind(failure);
  if (wait == nullptr) return nullptr;
  const auto transfer = std::ranges::find_if(all, [&](const exec::RankFailure& other) {
    const auto* const own = wait_behind(other);
    const bool is_awaited = std::ranges::find(wait->waits_for, other.rank) != wait->waits_for.end();
    return is_awaited && own != nullptr && own->waits_for.empty() && timeout_of(other);
  });
  return transfer == all.end() ? nullptr : &*transfer;
}

}  // namespace

const exec::RankFailure& root_of_timeout(const exec::RankFailure& failure, const std::vector<exec::RankFailure>& all) {
  if (const auto* const transfer = transfer_behind(failure, all)) return *transfer;
  const auto late = was_over_before(failure) ? timeout_of(failure) : std::nullopt;
  if (!late) return failure;
  const auto root = std::ranges::find_if(all, [&](const exec::RankFailure& other) {
    const auto own = timeout_of(other);
    const bool same_call = own && own->group() == late->group() && own->sequence() == late->sequence();
    const auto& timed_out = late->ranks();
    return same_call && !was_over_before(other) && std::ranges::find(timed_out, other.rank) != timed_out.end();
  });
  return root != all.end() ? *root : failure;
}

}  // namespace rehearse::sim
