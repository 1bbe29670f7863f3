// SPDX-License-Identifier: BSD-3-Clause
#include "report/page/event_timeline.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <rehearse_internal/comm/operation.h>

#include "report/writers/json_reader.h"
#include "report/writers/trace_slices.h"

namespace rehearse::sim {
namespace {

// The paths of source files by their names, because reports write places with the name only.
class SourceFiles {
 public:
  void add(const std::string& path) {
    const auto name = path.substr(path.find_last_of('/') + 1);
    if (name.empty()) return;
    const auto [known, is_new] = paths_.try_emplace(name, path);
    if (!is_new && known->second != path) ambiguous_.insert(name);
  }

  // Leaves out names that several files have, because nobody can tell which of them a report means.
  std::map<std::string, std::string> unambiguous() const {
    auto paths = paths_;
    for (const auto& name : ambiguous_) paths.erase(name);
    return paths;
  }

 private:
  std::map<std::string, std::string> paths_;
  std::set<std::string> ambiguous_;
};

constexpr std::string_view kTrace = "trace";

// A table of distinct items.
template <class Item>
class NumberedItems {
 public:
  explicit NumberedItems(std::vector<Item>& items) : items_(items) {}

  std::uint32_t number_of(const Item& item) {
    const auto [known, is_new] = numbers_.try_emplace(item, static_cast<std::uint32_t>(items_.size()));
    if (is_new) items_.push_back(item);
    return known->second;
  }

 private:
  std::vector<Item>& items_;
  std::map<Item, std::uint32_t> numbers_;
};

class TraceTimeline {
 public:
  explicit TraceTimeline(int ranks) : ranks_(ranks) {
    timeline_.calls.resize(static_cast<std::size_t>(ranks));
    timeline_.spans.resize(static_cast<std::size_t>(ranks));
  }

  Timeline make(const JsonReader& trace) {
    trace.get_list("traceEvents", [&](const JsonReader& event) {
      if (event.get<std::string>("ph") == "X") add(event);
      return 0;
    });
    add_members();
    for (auto& calls : timeline_.calls) std::ranges::stable_sort(calls, is_earlier);
    return std::move(timeline_);
  }

 private:
  static bool is_earlier(const Timeline::Call& a, const Timeline::Call& b) { return a.created < b.created; }

  // Traces have microseconds, with the nanoseconds as decimals.
  static std::int64_t time_in(const JsonReader& reader, const char* key) {
    return std::llround(reader.get<double>(key) * 1000);
  }

  void add(const JsonReader& event) {
    const auto rank = static_cast<std::size_t>(event.get_in("pid", 0, ranks_ - 1));
    const auto begin = time_in(event, "ts"), end = begin + time_in(event, "dur");
    if (event.get<std::string>("cat") == "computation") {
      timeline_.spans[rank].push_back({span_names_.number_of(event.get<std::string>("name")), begin, end});
    } else {
      add_call(event, rank, begin, end);
    }
  }

  void add_call(const JsonReader& event, std::size_t rank, std::int64_t begin, std::int64_t end) {
    const auto arguments = event.child("args");
    const bool message = event.get<std::string>("cat") == "point_to_point";
    const auto group = group_of(arguments);
    const auto fingerprint = arguments.get<std::string>("fingerprint");
    const auto name = event.get<std::string>("name");
    Timeline::Kind kind{.group = group,
                        .signature = signatures_.number_of({name.substr(0, name.find(' ')), fingerprint, ""}),
                        .site = site_of(arguments)};
    if (message) kind.type = name.starts_with("send") ? Timeline::CallType::send : Timeline::CallType::receive;
    kind.any_peer = message;  // a trace does not say who the peer is
    const auto state = arguments.get<std::string>("state");
    const auto started = state == "scheduled" ? Timeline::kNever : begin + time_in(arguments, "wait_us");
    const auto number = arguments.get<std::uint32_t>(message ? "p2p_seq_id" : "collective_seq_id");
    const bool failed = arguments.has("failed") && arguments.get<bool>("failed");
    const bool ended = failed || state == "completed";
    timeline_.calls[rank].push_back(
        {kinds_.number_of(kind), number, begin, started, ended ? end : Timeline::kNever, failed});
    members_[group].insert(static_cast<int>(rank));
  }

  std::uint32_t group_of(const JsonReader& arguments) {
    const auto names = arguments.get<std::vector<std::string>>("process_group");
    if (names.size() != 2) arguments.fail("args.process_group", "is not a name and a description");
    return groups_.number_of({names[0], names[1], {}});
  }

  std::uint32_t site_of(const JsonReader& arguments) {
    if (!arguments.has("where")) return 0;
    return sites_.number_of({arguments.get<std::string>("where")});
  }

  // A trace does not list the members of a group, so take the ranks that made calls on the group.
  void add_members() {
    for (const auto& [group, ranks] : members_) timeline_.groups[group].ranks.assign(ranks.begin(), ranks.end());
  }

  const int ranks_;
  Timeline timeline_;
  NumberedItems<Timeline::Group> groups_{timeline_.groups};
  NumberedItems<Timeline::Signature> signatures_{timeline_.signatures};
  NumberedItems<Timeline::Kind> kinds_{timeline_.kinds};
  NumberedItems<Timeline::Site> sites_{timeline_.sites};
  NumberedItems<std::string> span_names_{timeline_.span_names};
  std::map<std::uint32_t, std::set<int>> members_;
};

}  // namespace

Timeline timeline_in_trace(const Json& trace, int ranks) {
  return TraceTimeline(ranks).make(JsonReader(trace, kTrace));
}

std::map<std::string, std::string> files_in_flight_recorder(const Json& record) {
  SourceFiles files;
  try {
    for (const auto& of_rank : record.at("entries").items()) {
      for (const auto& entry : of_rank.items()) {
        for (const auto& frame : entry.at("frames").items()) files.add(frame.at("filename").get<std::string>());
      }
    }
  } catch (const JsonError& error) {
    throw ReportFormatError(fmt::format("is no flight record of rehearse: {}", error.what()));
  }
  return files.unambiguous();
}

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
