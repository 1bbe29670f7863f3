// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

#include <c10/core/impl/LocalDispatchKeySet.h>

#include <rehearse_internal/capture/fake_mode.h>

#include "capture/fake/capture_thread.h"
#include "capture/trace/caller/call_modes.h"
#include "capture/trace/caller/default_generator.h"

namespace rehearse::capture {

class Tracer;

// The calling fiber's tracer; null if the fiber captures nothing.
Tracer* current_tracer() noexcept;

// True if any fiber of the process may be capturing. A cheap test to make before current_tracer().
bool is_any_captured() noexcept;

// Counts as one capture for is_any_captured() while it lives.
class CountedCapture {
 public:
  CountedCapture() noexcept;
  ~CountedCapture();
  CountedCapture(const CountedCapture&) = delete;
  CountedCapture& operator=(const CountedCapture&) = delete;
};

// Routes the fiber's operators to this tracer while it lives.
class TracerScope {
 public:
  explicit TracerScope(Tracer& tracer);
  ~TracerScope();
  TracerScope(const TracerScope&) = delete;
  TracerScope& operator=(const TracerScope&) = delete;

 private:
  Tracer* const outer_;
};

// Turns the fiber's capture off while it lives.
class OutsideOfCapture {
 public:
  OutsideOfCapture();
  ~OutsideOfCapture();
  OutsideOfCapture(const OutsideOfCapture&) = delete;
  OutsideOfCapture& operator=(const OutsideOfCapture&) = delete;

 private:
  Tracer* const tracer_;
  const FakeMode::Off no_mode_;
  const c10::impl::ForceDispatchKeyGuard keys_;
};

// Like OutsideOfCapture, and also restores the generator and the modes of the code around the capture.
struct SuspendedCapture {
  SuspendedCapture(DefaultGenerator* refusing, const CallModes& around) : generator(refusing), modes(around) {}
  const DefaultGenerator::Outside generator;
  const OutsideOfCapture outside;
  const CallModes::Scope modes;
};

// Marks that an operator or the tracer itself is running, not captured code.
class InOperator {
 public:
  explicit InOperator(const FakeMode& mode)
      : flag_(mode.thread()->in_operator()), before_(std::exchange(flag_, true)) {}
  ~InOperator() { flag_ = before_; }
  InOperator(const InOperator&) = delete;
  InOperator& operator=(const InOperator&) = delete;

 private:
  bool& flag_;
  const bool before_;
};

}  // namespace rehearse::capture
