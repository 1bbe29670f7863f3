// SPDX-License-Identifier: BSD-3-Clause
#include "work_errors.h"

#include <string>

#include <fmt/format.h>

#include <rehearse_internal/exec/kind_of_time.h>
#include <rehearse_internal/formatting/rank_list.h>

#include "rank_work.h"

namespace rehearse::comm {

TimeoutError timeout_error(const RankWork& work, std::chrono::milliseconds limit, const exec::Observer& waiting) {
  const auto wait = waiting.wait();
  const auto& missing = wait.waits_for;
  const auto why = missing.empty() ? std::string("all ranks have called it, but the transfer takes longer")
                                   : "missing " + describe_ranks(missing);
  return {fmt::format("{}: Timed out waiting {}ms of {}; {}", wait.call, limit.count(),
                      exec::kind_of_time(work.owner()->executor().clock()), why),
          work.group().name, work.getSequencenumber(), missing};
}

void throw_failure(const std::exception_ptr& failure, bool timed_out) {
  if (!timed_out) std::rethrow_exception(failure);
  try {
    std::rethrow_exception(failure);
  } catch (const TimeoutError& error) {
    throw TimeoutError(error);
  }
}

}  // namespace rehearse::comm
