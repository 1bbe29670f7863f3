// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <rehearse/exec/time.h>

namespace rehearse::comm {

// A stretch of a rank's own work between its calls, such as "backward of submod_1".
struct Span {
  static constexpr VirtualTime kNever = VirtualTime::min();

  std::uint64_t id = 0;  // over all ranks, from 0, in order of the beginnings
  VirtualTime begin{};
  VirtualTime end = kNever;
  // How many calls of the world were made before: a call whose record_id is less was made before the span began. Tells
  // the order also where neither takes virtual time.
  std::uint64_t calls_before_begin = 0;
  std::uint64_t calls_before_end = 0;
  std::int32_t rank = -1;
  std::uint32_t name = 0;  // see SpanLog::name()
};

// The spans of a world, the latest ones or all. Not thread safe. Reading does not block. References to spans hold until
// the next begin().
class SpanLog {
 public:
  // How many are kept; 0: all.
  explicit SpanLog(std::size_t kept = 0) : kept_max_(kept) {}

  const std::deque<Span>& kept() const noexcept { return spans_; }
  const std::string& name(const Span& span) const { return names_.at(span.name); }

  // Gives the span's id. `calls`: how many there were so far.
  std::uint64_t begin(int rank, std::string_view name, VirtualTime now, std::uint64_t calls);
  // Nothing happens when it is no longer kept.
  void end(std::uint64_t id, VirtualTime now, std::uint64_t calls) noexcept;

 private:
  std::size_t kept_max_;
  std::uint64_t made_ = 0;
  std::deque<Span> spans_;
  std::vector<std::string> names_;
  std::map<std::string, std::uint32_t, std::less<>> name_ids_;
};

class EventLog;

// A span of the calling rank while it lives. Nothing is recorded where no log was given to this fiber.
class SpanScope {
 public:
  explicit SpanScope(std::string_view name);
  SpanScope(const SpanScope&) = delete;
  SpanScope& operator=(const SpanScope&) = delete;
  ~SpanScope();

 private:
  EventLog* log_;
  std::uint64_t id_ = 0;
};

// Spans of the calling fiber go to this log, which outlives it. For whoever runs ranks.
void record_spans_in(EventLog& log);

}  // namespace rehearse::comm
