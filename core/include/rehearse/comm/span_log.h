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

// A stretch of a rank's own work, such as "backward of submod_1". The rank may also make calls during it.
struct Span {
  static constexpr VirtualTime kNever = VirtualTime::min();

  std::uint64_t id = 0;  // counts the spans of all ranks, from 0
  VirtualTime begin{};
  VirtualTime end = kNever;
  // How many calls the world had made: a call with a smaller record_id was made before the span began (or ended).
  // Orders spans and calls even if neither takes virtual time.
  std::uint64_t calls_before_begin = 0;
  std::uint64_t calls_before_end = 0;
  std::int32_t rank = -1;
  std::uint32_t name = 0;  // see SpanLog::name()
};

// The latest spans of a world, or all of them. Not thread safe. Reading does not block. References to spans are valid
// until the next begin().
class SpanLog {
 public:
  // `kept`: how many spans to keep; 0: all.
  explicit SpanLog(std::size_t kept = 0) : kept_max_(kept) {}

  const std::deque<Span>& kept() const noexcept { return spans_; }
  const std::string& name(const Span& span) const { return names_.at(span.name); }

  // Returns the span's id. `calls`: how many calls the world has made so far.
  std::uint64_t begin(int rank, std::string_view name, VirtualTime now, std::uint64_t calls);
  // Does nothing if the log no longer keeps the span.
  void end(std::uint64_t id, VirtualTime now, std::uint64_t calls) noexcept;

 private:
  std::size_t kept_max_;
  std::uint64_t made_ = 0;
  std::deque<Span> spans_;
  std::vector<std::string> names_;
  std::map<std::string, std::uint32_t, std::less<>> name_ids_;
};

class EventLog;

// Records a span of the calling rank from construction to destruction. Records nothing if the fiber has no log.
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

// Makes the calling fiber record its spans in `log`, which must outlive the fiber. For code that starts ranks.
void record_spans_in(EventLog& log);

}  // namespace rehearse::comm
