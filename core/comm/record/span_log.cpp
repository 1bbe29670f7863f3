// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/comm/span_log.h>

#include <rehearse/comm/event_log.h>
#include <rehearse_internal/exec/fiber_local.h>
#include <rehearse_internal/exec/this_rank.h>

namespace rehearse::comm {
namespace {

struct SpanTarget {
  EventLog* log = nullptr;
};
const exec::FiberLocal<SpanTarget> span_target;

}  // namespace

std::uint64_t SpanLog::begin(int rank, std::string_view name, VirtualTime now, std::uint64_t calls) {
  auto known = name_ids_.find(name);
  if (known == name_ids_.end()) {
    known = name_ids_.emplace(name, static_cast<std::uint32_t>(names_.size())).first;
    names_.emplace_back(name);
  }
  spans_.push_back({.id = made_, .begin = now, .calls_before_begin = calls, .rank = rank, .name = known->second});
  if (kept_max_ != 0 && spans_.size() > kept_max_) spans_.pop_front();
  return made_++;
}

void SpanLog::end(std::uint64_t id, VirtualTime now, std::uint64_t calls) noexcept {
  const std::uint64_t first = made_ - spans_.size();
  if (id < first || id >= made_) return;
  Span& span = spans_[static_cast<std::size_t>(id - first)];
  span.end = now;
  span.calls_before_end = calls;
}

SpanScope::SpanScope(std::string_view name) : log_(nullptr) {
  const SpanTarget* const target = span_target.find();
  if (target == nullptr || target->log == nullptr) return;
  log_ = target->log;
  id_ = log_->spans().begin(exec::this_rank::rank(), name, exec::this_rank::now(), log_->size());
}

SpanScope::~SpanScope() {
  if (log_ != nullptr) log_->spans().end(id_, exec::this_rank::now(), log_->size());
}

void record_spans_in(EventLog& log) { span_target->log = &log; }

}  // namespace rehearse::comm
