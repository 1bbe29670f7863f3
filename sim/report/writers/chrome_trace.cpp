// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/sim/chrome_trace.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <rehearse_internal/comm/operation.h>

#include "report/writers/json.h"
#include "report/writers/known_facts.h"
#include "report/writers/text_lines.h"
#include "report/writers/trace_slices.h"

namespace rehearse::sim {
namespace {

constexpr int kSpanTrack = 1000;  // below the tracks of operations

double microseconds(VirtualDuration duration) { return static_cast<double>(duration.count()) / 1000.0; }
double microseconds(VirtualTime time) { return microseconds(time.time_since_epoch()); }

class TraceWriter {
 public:
  TraceWriter(std::ostream& out, const comm::EventLog& events, const Report& report)
      : out_(out), events_(events), report_(report) {}

  void write() {
    const auto slices = slices_of(events_, report_.end_time, report_.stuck_since);
    out_ << "{\"displayTimeUnit\":\"ns\",\"otherData\":" << json_text(run_facts(report_)) << ",\"traceEvents\":[";
    name_ranks();
    for (const Slice& slice : slices) put(slice_event(slice));
    put_spans();
    for (const Arrow& arrow : arrows_of(events_, slices)) put_arrow(slices[arrow.from], slices[arrow.to]);
    put_failures();
    out_ << "\n]}\n";
  }

 private:
  void put(Json event) {
    out_ << (first_ ? "\n" : ",\n") << json_text(std::move(event));
    first_ = false;
  }

  void name_ranks() {
    for (int rank = 0; rank < report_.ranks; ++rank) {
      put({{"ph", "M"}, {"pid", rank}, {"name", "process_name"}, {"args", {{"name", fmt::format("rank {}", rank)}}}});
      put({{"ph", "M"}, {"pid", rank}, {"name", "process_sort_index"}, {"args", {{"sort_index", rank}}}});
    }
  }

  Json slice_event(const Slice& slice) const {
    const comm::Event& event = slice.event;
    const bool p2p = comm::is_point_to_point(events_.signature(event).type);
    return {{"ph", "X"},
            {"pid", event.rank},
            {"tid", slice.lane},
            {"ts", microseconds(event.time_created)},
            {"dur", microseconds(slice.end - event.time_created)},
            {"name", events_.signature(event).name},  // tools group by the name
            {"cat", p2p ? "point_to_point" : "collective"},
            {"args", arguments(slice)}};
  }

  Json arguments(const Slice& slice) const {
    const auto record = events_.flight_record(slice.event);
    const bool started = slice.event.time_started != comm::Event::kNever;
    const VirtualTime waited_until = started ? slice.event.time_started : slice.end;
    Json arguments{
        {"process_group", Json::array({record.process_group_name, record.process_group_desc})},
        {"collective_seq_id", record.collective_seq_id},
        {"p2p_seq_id", record.p2p_seq_id},
        {"op_id", record.op_id},
        {"record_id", record.record_id},
        {"state", record.state},
        {"fingerprint", events_.signature(slice.event).fingerprint},
        {"wait_us", microseconds(std::max(waited_until - slice.event.time_created, VirtualDuration::zero()))}};
    if (slice.event.failed != 0) arguments["failed"] = true;
    if (const auto where = events_.call_site(slice.event).place(); !where.empty()) put_place(arguments, "", where);
    return arguments;
  }

  void put_spans() {
    std::set<int> named;
    for (const comm::Span& span : events_.spans().kept()) {
      if (named.insert(span.rank).second) {
        put({{"ph", "M"},
             {"pid", span.rank},
             {"tid", kSpanTrack},
             {"name", "thread_name"},
             {"args", {{"name", "computation"}}}});
      }
      const VirtualTime end = span.end != comm::Span::kNever ? span.end : report_.end_time;
      put({{"ph", "X"},
           {"pid", span.rank},
           {"tid", kSpanTrack},
           {"ts", microseconds(span.begin)},
           {"dur", microseconds(std::max(end, span.begin) - span.begin)},
           {"name", events_.spans().name(span)},
           {"cat", "computation"},
           {"args", {{"calls_before_begin", span.calls_before_begin}}}});
    }
  }

  // The arrow starts when `from` makes its call. It ends in the slice of `to`, at the same time or, if `to` makes its
  // call later, at the beginning of the slice.
  void put_arrow(const Slice& from, const Slice& to) {
    const VirtualTime start = from.event.time_created;
    const VirtualTime end = std::max(start, to.event.time_created);
    ++arrows_;
    put({{"ph", "s"},
         {"id", arrows_},
         {"pid", from.event.rank},
         {"tid", from.lane},
         {"ts", microseconds(start)},
         {"name", "arrived"},
         {"cat", "order"}});
    put({{"ph", "f"},
         {"bp", "e"},
         {"id", arrows_},
         {"pid", to.event.rank},
         {"tid", to.lane},
         {"ts", microseconds(end)},
         {"name", "arrived"},
         {"cat", "order"}});
  }

  void put_instant(const char* scope, int rank, VirtualTime at, const std::string& name) {
    put({{"ph", "i"},
         {"s", scope},
         {"pid", rank},
         {"tid", 0},
         {"ts", microseconds(at)},
         {"name", name},
         {"cat", "failure"}});
  }

  void put_failures() {
    for (const RankLine& line : report_.rank_lines) {
      if (line.state != RankOutcome::failed || line.at == RankLine::kNotKnown) continue;
      put_instant("p", line.rank, line.at, fmt::format("failed: {}", first_line(line.doing)));
    }
    if (report_.verdict == Verdict::ok) return;
    put_instant("g", 0, report_.end_time, fmt::format("{}: {}", to_string(report_.verdict), report_.headline));
  }

  std::ostream& out_;
  const comm::EventLog& events_;
  const Report& report_;
  std::uint64_t arrows_ = 0;
  bool first_ = true;
};

}  // namespace

void write_chrome_trace(std::ostream& out, const comm::EventLog& events, const Report& report) {
  TraceWriter(out, events, report).write();
}

}  // namespace rehearse::sim
