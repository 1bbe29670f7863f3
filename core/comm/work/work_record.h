// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>

#include <torch/csrc/distributed/c10d/Work.hpp>

#include <rehearse/comm/event_log.h>
#include <rehearse/exec/time.h>
#include <rehearse_internal/exec/check.h>

namespace rehearse::comm {

// The times at which a work began and ended. Also writes them into the event of its call, as long as the event log
// keeps the event.
class WorkRecord {
 public:
  // `event`: null if the call is not recorded.
  void open(Event* event) noexcept {
    REHEARSE_CHECK(!is_open(), id_);
    event_ = event;
    if (event != nullptr) id_ = event->record_id;
  }

  bool is_open() const noexcept { return id_ != Event::kNotRecorded; }
  std::uint64_t id() const noexcept { return id_; }  // record_id of the call's event

  // Null if the call is not recorded, or if a later call has taken the event's place.
  Event* event() const noexcept { return event_ != nullptr && event_->record_id == id_ ? event_ : nullptr; }

  void start(VirtualTime now) noexcept {
    REHEARSE_CHECK(now >= started_, id_);
    started_ = now;
    if (auto* const event = this->event()) event->time_started = now;
  }
  void complete(VirtualTime now) noexcept {
    ended_ = now;
    if (auto* const event = this->event()) event->time_ended = now;
  }
  void fail(VirtualTime now) noexcept {
    complete(now);
    if (auto* const event = this->event()) event->failed = 1;
  }

  VirtualTime ended() const noexcept { return ended_; }
  VirtualDuration duration() const noexcept { return ended_ - started_; }

  // The argument of a completion hook.
  std::shared_ptr<c10d::WorkInfo> info(c10d::OpType type, std::uint64_t sequence) const;

 private:
  Event* event_ = nullptr;
  std::uint64_t id_ = Event::kNotRecorded;  // identifies the event, because a later event may have overwritten it
  VirtualTime started_{};
  VirtualTime ended_{};
};

}  // namespace rehearse::comm
