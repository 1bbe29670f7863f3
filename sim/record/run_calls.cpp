// SPDX-License-Identifier: BSD-3-Clause
#include <map>
#include <utility>

#include <rehearse/comm/event_log.h>
#include <rehearse_internal/sim/determinism.h>

#include "record/call_list.h"

namespace rehearse::sim {

RunCalls calls_of(const comm::EventLog& log) {
  RunCalls run;
  std::map<std::string, std::uint32_t> known;
  const auto number_of = [&](std::string text) {
    const auto [entry, is_new] = known.try_emplace(std::move(text), static_cast<std::uint32_t>(run.texts.size()));
    if (is_new) run.texts.push_back(entry->first);
    return entry->second;
  };
  for (const auto& event : log.kept()) {
    const auto& kind = log.signature(event);
    run.calls.push_back({event.time_created, event.rank, event.seq_id,
                         number_of(call_text(kind.fingerprint, kind, event)), number_of(log.group(event).name),
                         number_of(log.call_site(event).describe())});
  }
  return run;
}

}  // namespace rehearse::sim
