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

// The calling fiber's; null when nothing is captured in it.
Tracer* current_tracer() noexcept;

// Whether there is a capture in this process: where there is none, nobody pays for more than a look at this.
bool is_any_captured() noexcept;

// Each Tracer has one.
class CountedCapture {
 public:
  CountedCapture() noexcept;
  ~CountedCapture();
  CountedCapture(const CountedCapture&) = delete;
  CountedCapture& operator=(const CountedCapture&) = delete;
};

// While it lives, the fiber's operators come to this tracer.
class TracerScope {
 public:
  explicit TracerScope(Tracer& tracer);
  ~TracerScope();
  TracerScope(const TracerScope&) = delete;
  TracerScope& operator=(const TracerScope&) = delete;

 private:
  Tracer* const outer_;
};

// While it lives, the fiber captures nothing.
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

// The same, with the generator and the modes of the code around the capture.
struct SuspendedCapture {
  SuspendedCapture(DefaultGenerator* refusing, const CallModes& around) : generator(refusing), modes(around) {}
  const DefaultGenerator::Outside generator;
  const OutsideOfCapture outside;
  const CallModes::Scope modes;
};

// While it lives, an operator is at work, or what the tracer does itself.
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
