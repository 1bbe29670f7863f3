// SPDX-License-Identifier: BSD-3-Clause
#include "capture/fake/capture_thread.h"

#include <utility>

#include <rehearse_internal/capture/errors.h>
#include <rehearse_internal/exec/this_rank.h>

namespace rehearse::capture {

CaptureThread::Place CaptureThread::here() {
  Place place{.thread = std::this_thread::get_id()};
  if (!exec::this_rank::is_fiber()) return place;
  place.rank = exec::this_rank::rank();
  place.fiber = exec::this_rank::fiber_of_rank();
  return place;
}

void CaptureThread::begin() {
  const std::lock_guard lock(mutex_);
  place_ = here();
}

void CaptureThread::end() {
  const std::lock_guard lock(mutex_);
  place_.reset();
}

bool CaptureThread::is_another() const {
  const Place caller = here();
  const std::lock_guard lock(mutex_);
  if (!place_) return false;
  if (caller.rank >= 0) return caller.rank == place_->rank && caller.fiber != place_->fiber;
  return caller.thread != place_->thread;
}

void CaptureThread::note_offset(const c10::Storage& storage) {
  if (is_another()) return note("Tensor::storage_offset", exec::CallSite::capture());
  if (!in_operator_) offsets_read_.emplace(storage.unsafeGetStorageImpl(), storage.getWeakStorageImpl());
}

void CaptureThread::note(std::string operator_name, exec::CallSite where) {
  const std::lock_guard lock(mutex_);
  if (noted_.load(std::memory_order_relaxed)) return;
  operator_name_ = std::move(operator_name);
  where_ = std::move(where);
  noted_.store(true, std::memory_order_release);
}

void CaptureThread::refuse() const {
  const std::lock_guard lock(mutex_);
  throw NotCapturable(operator_name_ + " is called in another thread with a tensor that is being captured",
                      "Start threads that use tensors outside of the captured function or in an eager region.", where_);
}

}  // namespace rehearse::capture
