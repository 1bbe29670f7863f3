// SPDX-License-Identifier: BSD-3-Clause
#include "wording.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rehearse_internal/formatting/rank_list.h>

namespace rehearse::comm {

std::string disagreeing(std::string_view title) { return fmt::format("{} (the ranks' calls do not match)", title); }

std::string waiting_for_ranks(std::string_view title, std::size_t arrived, std::size_t ranks) {
  return fmt::format("{} ({} of {} ranks {} called it)", title, arrived, ranks, arrived == 1 ? "has" : "have");
}

std::string overdue(std::string_view title, std::span<const int> missing, double seconds) {
  return fmt::format("{}: {} did not come within {:g} s", title, describe_ranks(missing), seconds);
}

std::string near_miss(const Operation& call, int rank, std::span<const Envelope> others, const GroupIdentity& group) {
  if (others.empty()) return "";
  const bool is_send = call.type == c10d::OpType::SEND;
  const auto fits_but_tag = [&](const Envelope& other) {
    return is_send ? other.source == rank || other.source < 0 : other.source == call.peer || call.peer < 0;
  };
  const auto other = std::ranges::find_if(others, fits_but_tag);
  if (other != others.end()) {
    return is_send ? fmt::format("rank {} receives with tag {}", group.global_rank(call.peer), other->tag)
                   : fmt::format("rank {} has sent with tag {}", group.global_rank(other->source), other->tag);
  }
  if (!is_send) return fmt::format("rank {} has sent instead", group.global_rank(others.front().source));
  // A receive from another rank and with another tag waits for another message.
  const auto same_tag = std::ranges::find(others, call.tag, &Envelope::tag);
  if (same_tag == others.end()) return "";
  return fmt::format("rank {} receives from rank {}", group.global_rank(call.peer),
                     group.global_rank(same_tag->source));
}

std::string waiting_for_message(std::string_view title, bool is_send, std::string_view near_miss) {
  return fmt::format("{} ({}{}{})", title, is_send ? "no receive for it" : "nothing has been sent",
                     near_miss.empty() ? "" : "; ", near_miss);
}

std::string new_group_title(std::size_t index) { return fmt::format("new_group #{}", index); }

std::string given_up_barrier(std::span<const int> missing, bool names_all, std::chrono::milliseconds limit) {
  return fmt::format("[Rank 0]: Rank{} {} failed to pass monitoredBarrier in {} ms", names_all ? "s" : "",
                     fmt::join(names_all ? missing : missing.first(1), ", "), limit.count());
}

std::string barrier_without_time() {
  return "Rank 0 timed out in monitoredBarrier after 0 ms.\nNo ranks successfully processed in monitoredBarrier.";
}

std::string barrier_given_up_by_rank_0(int rank) {
  return fmt::format(
      "Rank {} successfully reached monitoredBarrier, but received errors while waiting for send/recv from "
      "rank 0. Please check rank 0 logs for faulty rank.",
      rank);
}

std::string members_text(std::span<const int> ranks) {
  constexpr std::size_t kListed = 16;
  const auto runs = ranks.size() > kListed ? rank_numbers(ranks) : std::string();
  // Texts of different lists must differ, so do not use a text that leaves out ranks.
  if (!runs.empty() && runs.find(" more") == runs.npos) return fmt::format("{{{}}}", runs);
  return fmt::format("{{{}}}", fmt::join(ranks, ", "));
}

}  // namespace rehearse::comm
