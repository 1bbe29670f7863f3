// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include <c10/core/Storage.h>

#include <rehearse/exec/call_site.h>

namespace rehearse::capture {

// The thread of a capture, and the first use of the capture's tensors by another thread. If an operator threw in
// another std::thread and the thread did not catch the error, the process (in a world the rank) would end. Therefore
// the operator returns a fake there, and the capture's own thread throws the refusal.
//
// Any thread may call is_traced(), is_another(), note_offset() and note(). Only the capture's thread may call the other
// functions.
class CaptureThread {
 public:
  // `is_traced`: a tracer handles operators above autograd.
  explicit CaptureThread(bool is_traced) : is_traced_(is_traced) {}

  bool is_traced() const noexcept { return is_traced_; }
  void begin();
  void end();

  // True if a capture is on and the caller does not run it: the caller is another thread or, in a world, another fiber
  // of the capture's rank. False on other ranks: a rank that uses another rank's tensor gets an error.
  bool is_another() const;

  // True while an operator runs, false while the captured code runs.
  bool& in_operator() noexcept { return in_operator_; }
  // Called when code reads a tensor's storage offset. If captured code reads it, notes the storage. If another thread
  // reads it, notes the read like an operator that the thread called.
  void note_offset(const c10::Storage& storage);
  bool knows_offset(const void* storage) const { return offsets_read_.contains(storage); }

  // Notes an operator that another thread called. Only the first call counts.
  void note(std::string operator_name, exec::CallSite where);
  // Throws NotCapturable if note() was called, and names the operator.
  void refuse_others() const {
    if (noted_.load(std::memory_order_acquire)) refuse();
  }

 private:
  struct Place {
    std::thread::id thread = {};
    int rank = -1;  // the fiber's rank
    std::uint32_t fiber = 0;
  };
  static Place here();

  [[noreturn]] void refuse() const;

  const bool is_traced_;
  mutable std::mutex mutex_;
  std::optional<Place> place_;  // none: no capture is on
  bool in_operator_ = false;
  // By storage. Weak references, so that a later storage does not get the address of one that is gone.
  std::map<const void*, c10::weak_intrusive_ptr<c10::StorageImpl>> offsets_read_;
  std::atomic<bool> noted_ = false;
  std::string operator_name_;
  exec::CallSite where_;
};

}  // namespace rehearse::capture
