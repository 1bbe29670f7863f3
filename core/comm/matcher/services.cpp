// SPDX-License-Identifier: BSD-3-Clause
#include "comm/matcher/services.h"

#include <algorithm>

#include <fmt/format.h>

#include <rehearse/comm/errors.h>
#include <rehearse_internal/comm/title.h>

namespace rehearse::comm {

void ShortMessageLog::note(const GroupIdentity& group, const RankWork& send, const RankWork& recv) {
  const auto* const event = recv.record().event();
  const std::uint32_t call_site = event != nullptr ? event->call_site : 0;
  const std::int64_t received = send.operation.inputs[0].numel();
  const auto [entry, is_new] = kinds_.try_emplace({group.id, recv.signature, call_site, received});
  auto& [first, messages] = entry->second;
  if (is_new) {
    first = recv.record().id();
    messages.call = title_of(recv);
    messages.elements = recv.operation.outputs[0].numel();
    messages.received = received;
    if (event != nullptr) messages.where = events_.call_site(*event);
  }
  ++messages.times;
  const auto at = std::lower_bound(messages.ranks.begin(), messages.ranks.end(), recv.global_rank());
  if (at == messages.ranks.end() || *at != recv.global_rank()) messages.ranks.insert(at, recv.global_rank());
}

std::vector<ShortMessages> ShortMessageLog::messages() const {
  std::vector<const Kind*> kinds;
  for (const auto& [key, kind] : kinds_) kinds.push_back(&kind);
  std::ranges::sort(kinds, [](const auto* a, const auto* b) { return a->first < b->first; });
  std::vector<ShortMessages> all;
  for (const auto* const kind : kinds) all.push_back(kind->messages);
  return all;
}

void Mismatches::fail(const Mismatch& mismatch) {
  const auto text = to_string(mismatch);
  report(mismatch);
  executor_.stop(text);
  throw MismatchError(text, mismatch.group, mismatch.sequence, {mismatch.first.rank, mismatch.second.rank});
}

void Habits::went_on(int rank, const std::string& group, const std::string& call) {
  const bool of_gloo_alone = call.starts_with("monitored_barrier");
  remarks_[fmt::format("went on with group \"{}\" after {} had timed out: {} all later calls of the group", group, call,
                       of_gloo_alone ? "Gloo refuses" : "Gloo and NCCL refuse")]
      .insert(rank);
}

void Habits::aborted(int rank, const std::string& call) {
  notes_[fmt::format("the program aborted {}, which it had called", call)].insert(rank);
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
