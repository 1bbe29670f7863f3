// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include <rehearse/exec/call_site.h>

namespace rehearse::capture {

// The thread in which a capture is on, and what other threads have done with its tensors meanwhile. What an operator
// throws in a std::thread nobody catches, and the process (in a world the rank) ends. So the operator gives some fake
// there, and the capture is refused in its own thread.
//
// Any thread may call note() and is_another(); the others are for the thread of the capture. Never blocks for long.
class CaptureThread {
 public:
  // `is_traced`: a tracer takes operators above autograd.
  explicit CaptureThread(bool is_traced) : is_traced_(is_traced) {}

  bool is_traced() const noexcept { return is_traced_; }
  void begin();
  void end();

  // A capture is on, and the caller is another thread of its process, or in a world of its rank. A tensor that another
  // rank has got is that rank's error.
  bool is_another() const;

  // Whether an operator is at work, and not the code that is being captured.
  bool& in_operator() noexcept { return in_operator_; }
  // The storages in which the code has asked where a tensor begins.
  void note_offset(const void* storage) { offsets_read_.insert(storage); }
  bool knows_offset(const void* storage) const { return offsets_read_.contains(storage); }

  // Of several operators the first one counts.
  void note(std::string operator_name, exec::CallSite where);
  // Throws NotCapturable with what was noted.
  void refuse_others() const {
    if (noted_.load(std::memory_order_acquire)) refuse();
  }

 private:
  struct Place {
    std::thread::id thread = {};
    int rank = -1;  // of a fiber
    std::uint32_t fiber = 0;
  };
  static Place here();

  [[noreturn]] void refuse() const;

  const bool is_traced_;
  mutable std::mutex mutex_;
  std::optional<Place> place_;  // none: no capture is on
  bool in_operator_ = false;
  std::set<const void*> offsets_read_;
  std::atomic<bool> noted_ = false;
  std::string operator_name_;
  exec::CallSite where_;
};

}  // namespace rehearse::capture
