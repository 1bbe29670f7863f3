// SPDX-License-Identifier: BSD-3-Clause
#include "report/page/event_timeline.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <rehearse_internal/comm/operation.h>

#include "report/page/source_files.h"
#include "report/writers/trace_slices.h"

namespace rehearse::sim {
namespace {

std::int64_t timeline_time(VirtualTime time) {
  return time == comm::Event::kNever ? Timeline::kNever : time.time_since_epoch().count();
}

class EventTimeline {
 public:
  EventTimeline(const comm::EventLog& events, int ranks, std::optional<VirtualTime> stuck_since)
      : events_(events), stuck_since_(stuck_since) {
    timeline_.calls.resize(static_cast<std::size_t>(ranks));
    timeline_.spans.resize(static_cast<std::size_t>(ranks));
  }

  Timeline make() {
    for (const auto& group : events_.groups()) timeline_.groups.push_back({group.name, group.description, group.ranks});
    add_sites();
    const auto kept = events_.kept();
    timeline_.left_out = events_.size() - kept.size();
    for (const auto& event : kept) add(shown(event, stuck_since_));
    for (const auto& span : events_.spans().kept()) add(span);
    return std::move(timeline_);
  }

 private:
  void add_sites() {
    const auto& sites = events_.call_sites();
    SourceFiles files;
    for (std::size_t i = 1; i < sites.size(); ++i) {
      auto& lines = timeline_.sites.emplace_back();
      for (const auto& place : sites[i].user_places()) {
        lines.push_back(place.text);
        files.add(place.file);
      }
    }
    timeline_.files = files.unambiguous();
  }

  void add(const comm::Event& event) {
    const auto kind = kind_of(event);
    timeline_.calls[static_cast<std::size_t>(event.rank)].push_back(
        {kind, event.seq_id, timeline_time(event.time_created), timeline_time(event.time_started),
         timeline_time(event.time_ended), event.failed != 0});
  }

  void add(const comm::Span& span) {
    auto& names = timeline_.span_names;
    const auto& name = events_.spans().name(span);
    const auto [known, is_new] = span_names_.try_emplace(name, static_cast<std::uint32_t>(names.size()));
    if (is_new) names.push_back(name);
    timeline_.spans[static_cast<std::size_t>(span.rank)].push_back(
        {known->second, timeline_time(span.begin), timeline_time(span.end)});
  }

  std::uint32_t kind_of(const comm::Event& event) {
    Timeline::Kind kind{
        .group = event.pg_id, .signature = signature_of(event), .site = event.call_site, .tag = event.tag};
    const auto type = events_.signature(event).type;
    if (comm::is_point_to_point(type)) {
      kind.type = type == c10d::OpType::SEND ? Timeline::CallType::send : Timeline::CallType::receive;
      kind.any_peer = event.peer < 0;
      if (!kind.any_peer) kind.peer_offset = event.peer - event.rank;
    }
    // Consecutive events usually have one kind, so try the last kind first.
    if (last_ && last_->first == kind) return last_->second;
    const auto [known, is_new] = kinds_.try_emplace(kind, static_cast<std::uint32_t>(timeline_.kinds.size()));
    if (is_new) timeline_.kinds.push_back(kind);
    last_ = *known;
    return known->second;
  }

  std::uint32_t signature_of(const comm::Event& event) {
    auto& signatures = timeline_.signatures;
    const auto [known, is_new] =
        signatures_.try_emplace(event.signature, static_cast<std::uint32_t>(signatures.size()));
    if (is_new) {
      const auto& signature = events_.signature(event);
      signatures.push_back({signature.name, signature.fingerprint, signature.label});
    }
    return known->second;
  }

  const comm::EventLog& events_;
  const std::optional<VirtualTime> stuck_since_;
  Timeline timeline_;
  std::map<std::string, std::uint32_t> span_names_;
  std::map<std::uint32_t, std::uint32_t> signatures_;
  std::map<Timeline::Kind, std::uint32_t> kinds_;
  std::optional<std::pair<Timeline::Kind, std::uint32_t>> last_;
};

}  // namespace

Timeline timeline_of(const comm::EventLog& events, int ranks, std::optional<VirtualTime> stuck_since) {
  return EventTimeline(events, ranks, stuck_since).make();
}

}  // namespace rehearse::sim
