// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/comm/event_log.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <rehearse_internal/comm/operation.h>

namespace rehearse::comm {
namespace {

// The flight recorder's name for the operation, which its analyzer looks up.
std::string_view recorder_name(const Signature& signature) {
  const auto name = op_row(signature.type).recorder_name;
  return name.empty() ? std::string_view(signature.name) : name;
}

std::int64_t nanoseconds(VirtualTime time) {
  return time == Event::kNever ? -1 : static_cast<std::int64_t>(time.time_since_epoch().count());
}

std::vector<std::string> texts(const std::vector<at::ScalarType>& types) {
  std::vector<std::string> names;
  names.reserve(types.size());
  for (const auto type : types) names.emplace_back(c10::toString(type));
  return names;
}

int position(const std::vector<int>& ranks, int rank) {
  return static_cast<int>(std::ranges::find(ranks, rank) - ranks.begin());
}

EventLogOptions with_one_at_least(EventLogOptions options) {
  options.last_of_each_rank = std::max<std::size_t>(options.last_of_each_rank, 1);
  return options;
}

std::string profiling_name(const Event& event, const Signature& signature, const EventLog::Group& group) {
  const int self = position(group.ranks, event.rank);
  const int peer = event.peer >= 0 ? position(group.ranks, event.peer) : self;
  if (signature.type == c10d::OpType::SEND) return fmt::format("nccl:send {}->{}", self, peer);
  if (is_point_to_point(signature.type)) return fmt::format("nccl:recv {}<-{}", self, peer);
  return fmt::format("nccl:{}", recorder_name(signature));
}

}  // namespace

EventLog::EventLog(EventLogOptions options)
    : options_(with_one_at_least(options)),
      spans_(options_.keep_all ? 0
                               : options_.last_of_each_rank * static_cast<std::size_t>(std::max(options_.ranks, 1))),
      made_(static_cast<std::size_t>(options.ranks)) {
  if (!options_.keep_all) rounds_.resize(options_.last_of_each_rank);
}

std::vector<Event> EventLog::of_rank(int rank) const {
  std::vector<Event> events;
  if (options_.keep_all) {
    std::copy_if(all_.begin(), all_.end(), std::back_inserter(events),
                 [rank](const Event& event) { return event.rank == rank; });
    return events;
  }
  const auto index = static_cast<std::size_t>(rank);
  const auto count = made_.at(index).events;
  for (auto i = count - std::min(count, rounds_.size()); i < count; ++i) {
    events.push_back(rounds_[i % rounds_.size()][index]);
  }
  return events;
}

std::vector<Event> EventLog::kept() const {
  if (options_.keep_all) return {all_.begin(), all_.end()};
  std::vector<Event> events;
  for (int rank = 0; rank < options_.ranks; ++rank) {
    const auto of_one = of_rank(rank);
    events.insert(events.end(), of_one.begin(), of_one.end());
  }
  std::ranges::sort(events, [](const Event& a, const Event& b) { return a.record_id < b.record_id; });
  return events;
}

template <class Matters>
const Event* EventLog::last_that(int rank, const Matters& matters) const {
  if (options_.keep_all) {
    const auto last = std::find_if(all_.rbegin(), all_.rend(),
                                   [&](const Event& event) { return event.rank == rank && matters(event); });
    return last != all_.rend() ? &*last : nullptr;
  }
  const auto index = static_cast<std::size_t>(rank);
  const auto count = made_.at(index).events;
  for (auto i = count; i > count - std::min(count, rounds_.size()); --i) {
    const auto& event = rounds_[(i - 1) % rounds_.size()][index];
    if (matters(event)) return &event;
  }
  return nullptr;
}

const Event* EventLog::last(int rank) const {
  return last_that(rank, [](const Event&) { return true; });
}

const Event* EventLog::last_completed(int rank) const {
  return last_that(rank, [](const Event& event) { return event.completed(); });
}

std::string EventLog::title(const Event& event) const {
  const auto& kind = signature(event);
  const auto of = kind.label.empty() ? std::string{} : fmt::format(" of \"{}\"", kind.label);
  return fmt::format("{} #{}{} on group \"{}\"", kind.name, event.seq_id, of, group(event).name);
}

FlightRecord EventLog::flight_record(const Event& event) const {
  const auto& kind = signature(event);
  const auto& pg = group(event);
  const bool is_p2p = is_point_to_point(kind.type);
  const bool completed = event.completed();
  const bool started = event.time_started != Event::kNever;
  FlightRecord record;
  record.record_id = event.record_id;
  record.pg_id = event.pg_id;
  record.process_group_name = pg.name;
  record.process_group_desc = pg.description;
  record.collective_seq_id = is_p2p ? event.op_id - event.seq_id : event.seq_id;
  record.p2p_seq_id = is_p2p ? event.seq_id : event.op_id - event.seq_id;
  record.op_id = event.op_id;
  record.profiling_name = profiling_name(event, kind, pg);
  record.time_created_ns = nanoseconds(event.time_created);
  record.time_discovered_started_ns = nanoseconds(event.time_started);
  record.time_discovered_completed_ns = completed ? nanoseconds(event.time_ended) : -1;
  record.duration_ms =
      completed ? std::chrono::duration<double, std::milli>(event.time_ended - event.time_started).count() : -1;
  record.input_sizes = kind.input_sizes;
  record.output_sizes = kind.output_sizes;
  record.input_dtypes = texts(kind.input_dtypes);
  record.output_dtypes = texts(kind.output_dtypes);
  record.state = completed ? "completed" : started ? "started" : "scheduled";
  record.retired = completed;
  record.timeout_ms = static_cast<std::uint64_t>(kind.timeout.count());
  record.is_p2p = is_p2p;
  return record;
}

}  // namespace rehearse::comm
