// SPDX-License-Identifier: BSD-3-Clause
#include "comm/matcher/habits.h"

#include <fmt/format.h>

namespace rehearse::comm {

void Habits::went_on(int rank, const std::string& group, const std::string& call) {
  const bool of_gloo_alone = call.starts_with("monitored_barrier");
  remarks_[fmt::format("went on with group \"{}\" after {} had timed out: {} all later calls of the group", group, call,
                       of_gloo_alone ? "Gloo refuses" : "Gloo and NCCL refuse")]
      .insert(rank);
}

void Habits::shares_with_threads(int rank, const std::string& group, bool race) {
  const auto text = fmt::format(
      "collectives on group \"{}\" come from several threads: unless the program orders them, give each thread a group "
      "of its own",
      group);
  if (race) {
    raced_groups_.insert(group);
    notes_.erase(text);
    remarks_[text].insert(rank);
  } else if (!remarks_.contains(text)) {
    notes_[text].insert(rank);
  }
}

void Habits::labels_differ(int sender, const std::string& group, const std::string& send, const std::string& recv) {
  if (!groups_with_two_labels_.insert(group).second) return;
  notes_[fmt::format("{} was received under label \"{}\", the first message of the group with two labels", send, recv)]
      .insert(sender);
}

}  // namespace rehearse::comm
