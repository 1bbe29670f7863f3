// SPDX-License-Identifier: BSD-3-Clause
#include "comm/matcher/short_message_log.h"

#include <algorithm>
#include <utility>

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
  std::sort(kinds.begin(), kinds.end(), [](const auto* a, const auto* b) { return a->first < b->first; });
  std::vector<ShortMessages> all;
  for (const auto* const kind : kinds) all.push_back(kind->messages);
  return all;
}

}  // namespace rehearse::comm
