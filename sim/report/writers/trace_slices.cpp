// SPDX-License-Identifier: BSD-3-Clause
#include "report/writers/trace_slices.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <set>
#include <tuple>

#include <rehearse_internal/comm/operation.h>

namespace rehearse::sim {
namespace {

using comm::Event;

// Group, source, destination and tag. Messages that share these arrive in order.
using Channel = std::tuple<std::uint32_t, int, int, int>;

struct Messages {
  std::map<Channel, std::deque<std::size_t>> sends, receives;
  // Group, destination and tag of receives from any source. Nobody knows which send such a receive took, so sends to
  // this destination with this tag have no arrows.
  std::set<std::tuple<std::uint32_t, int, int>> any_source;
};

void add_message(Messages& messages, const Event& event, bool is_send, std::size_t index) {
  if (is_send) {
    messages.sends[{event.pg_id, event.rank, event.peer, event.tag}].push_back(index);
  } else if (event.peer >= 0) {
    messages.receives[{event.pg_id, event.peer, event.rank, event.tag}].push_back(index);
  } else {
    messages.any_source.emplace(event.pg_id, event.rank, event.tag);
  }
}

void add_message_arrows(const Messages& messages, std::vector<Arrow>& arrows) {
  for (const auto& [channel, sends] : messages.sends) {
    const auto& [group, source, destination, tag] = channel;
    if (messages.any_source.contains({group, destination, tag})) continue;
    const auto receives = messages.receives.find(channel);
    if (receives == messages.receives.end()) continue;
    const std::size_t pairs = std::min(sends.size(), receives->second.size());
    for (std::size_t i = 0; i < pairs; ++i) arrows.push_back({sends[i], receives->second[i]});
  }
}

}  // namespace

comm::Event shown(comm::Event event, std::optional<VirtualTime> stuck_since) {
  if (!stuck_since || event.completed() || !event.ended() || event.time_ended <= *stuck_since) return event;
  event.time_ended = Event::kNever;
  event.failed = 0;
  return event;
}

std::vector<Slice> slices_of(const comm::EventLog& events, VirtualTime end_of_world,
                             std::optional<VirtualTime> stuck_since) {
  std::vector<Slice> slices;
  std::map<int, std::vector<VirtualTime>> lanes;  // for each rank, when its tracks become free
  for (const Event& kept : events.kept()) {
    const Event event = shown(kept, stuck_since);
    Slice slice{event, std::max(event.ended() ? event.time_ended : end_of_world, event.time_created)};
    auto& free_at = lanes[event.rank];
    const auto lane = std::ranges::find_if(free_at, [&](VirtualTime free) { return free <= event.time_created; });
    slice.lane = static_cast<int>(lane - free_at.begin());
    if (lane == free_at.end()) {
      free_at.push_back(slice.end);
    } else {
      *lane = slice.end;
    }
    slices.push_back(slice);
  }
  return slices;
}

std::vector<Arrow> arrows_of(const comm::EventLog& events, const std::vector<Slice>& slices) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::size_t>> collectives;  // by group and seq_id
  Messages messages;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const Event& event = slices[i].event;
    const auto type = events.signature(event).type;
    if (comm::is_point_to_point(type)) {
      add_message(messages, event, type == c10d::OpType::SEND, i);
    } else if (event.time_started != Event::kNever) {
      collectives[{event.pg_id, event.seq_id}].push_back(i);
    }
  }
  std::vector<Arrow> arrows;
  for (const auto& [call, participants] : collectives) {
    // Slices are in order of the calls, so the last one arrived last.
    for (std::size_t i = 0; i + 1 < participants.size(); ++i) arrows.push_back({participants.back(), participants[i]});
  }
  add_message_arrows(messages, arrows);
  return arrows;
}

}  // namespace rehearse::sim
