// SPDX-License-Identifier: BSD-3-Clause
#include <map>
#include <utility>

#include <fmt/format.h>

#include <rehearse/comm/event_log.h>
#include <rehearse_internal/comm/operation.h>
#include <rehearse_internal/sim/determinism.h>

namespace rehearse::sim {
namespace {

std::string what_of(const comm::EventLog& log, const comm::Event& event) {
  const auto& kind = log.signature(event);
  if (!comm::is_point_to_point(kind.type)) return kind.fingerprint;
  const auto* const direction = kind.type == c10d::OpType::SEND ? "to" : "from";
  const auto peer = event.peer >= 0 ? fmt::format("rank {}", event.peer) : std::string("any rank");
  return fmt::format("{} {} {} with tag {}", kind.fingerprint, direction, peer, event.tag);
}

}  // namespace

RunCalls calls_of(const comm::EventLog& log) {
  RunCalls run;
  std::map<std::string, std::uint32_t> known;
  const auto number_of = [&](std::string text) {
    const auto [entry, is_new] = known.try_emplace(std::move(text), static_cast<std::uint32_t>(run.texts.size()));
    if (is_new) run.texts.push_back(entry->first);
    return entry->second;
  };
  for (const auto& event : log.kept()) {
    run.calls.push_back({event.time_created, event.rank, event.seq_id, number_of(what_of(log, event)),
                         number_of(log.group(event).name)});
  }
  return run;
}

}  // namespace rehearse::sim
