// SPDX-License-Identifier: BSD-3-Clause
#include "report/failure_text.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <rehearse/comm/errors.h>
#include <rehearse/exec/rank_list.h>
#include <rehearse/sim/format_time.h>

namespace rehearse::sim {

bool is_timeout(const exec::RankFailure& failure) {
  return is_a<TimeoutError>(failure) || is_a<c10::DistStoreError>(failure);
}

std::string text_of(const exec::RankFailure& failure) {
  try {
    std::rethrow_exception(failure.error);
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  } catch (...) {
    return failure.what;
  }
}

std::string gist_of(const exec::RankFailure& failure) {
  constexpr std::size_t kLong = 160;
  const std::string text = text_of(failure);
  const std::string line = text.substr(0, text.find('\n'));
  return line.size() > kLong ? line.substr(0, line.find(". ")) : line;
}

// Only of a timeout that the failure seems to come from, and does not tell itself: nothing has happened in between.
std::string after_a_timeout(const exec::RankFailure& failure, const comm::EventLog& events) {
  if (!failure.gave_up) return "";
  const auto& wait = *failure.gave_up;
  if (wait.at != failure.at || text_of(failure).find(wait.call) != std::string::npos) return "";
  const auto* const last = events.last_completed(failure.rank);
  if (last != nullptr && last->time_completed > wait.at) return "";
  return fmt::format("; before that its {} timed out at {}{}", wait.call, format_time(wait.at),
                     wait.waits_for.empty() ? "" : ", missing " + describe_ranks(wait.waits_for));
}

}  // namespace rehearse::sim
