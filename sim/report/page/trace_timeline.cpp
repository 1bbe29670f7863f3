// SPDX-License-Identifier: BSD-3-Clause
#include "report/page/trace_timeline.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "report/page/source_files.h"
#include "report/writers/json_reader.h"

namespace rehearse::sim {
namespace {

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
    for (auto& calls : timeline_.calls) std::stable_sort(calls.begin(), calls.end(), is_earlier);
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

}  // namespace rehearse::sim
