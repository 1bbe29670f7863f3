// SPDX-License-Identifier: BSD-3-Clause
#include "device_call.h"

#include <c10/core/impl/VirtualGuardImpl.h>

namespace rehearse::real {
namespace {

// Events that can be asked for their time cost the device more.
c10::EventFlag flag_of(bool timed) noexcept {
  return timed ? c10::EventFlag::BACKEND_DEFAULT : c10::EventFlag::PYTORCH_DEFAULT;
}

}  // namespace

DeviceCall::DeviceCall(int rank, c10::Stream caller, c10::Stream runs_on, bool timed)
    : rank_(rank),
      caller_(caller),
      runs_on_(runs_on),
      timed_(timed),
      before_(caller.device_type()),
      begin_(caller.device_type(), flag_of(timed)),
      after_(caller.device_type(), flag_of(timed)) {
  before_.record(caller_);
}

void DeviceCall::begin() {
  if (runs_on_ != caller_) before_.block(runs_on_);
  if (timed_) begin_.record(runs_on_);
}

void DeviceCall::end() {
  after_.record(runs_on_);
  launched_ = true;
}

bool DeviceCall::query(const c10::Event& event) noexcept {
  if (failure_ != nullptr) return false;
  try {
    return event.query();
  } catch (...) {
    failure_ = std::current_exception();
    return false;
  }
}

bool DeviceCall::done() noexcept {
  if (!done_) done_ = launched_ && query(after_);
  return done_;
}

bool DeviceCall::reached() noexcept { return query(before_); }

void DeviceCall::order() noexcept {
  if (failure_ != nullptr || done_) return;
  try {
    const c10::impl::VirtualGuardImpl guard(caller_.device_type());
    const auto current = guard.getStream(caller_.device());
    if (current != runs_on_) after_.block(current);
  } catch (...) {
    failure_ = std::current_exception();
  }
}

std::optional<float> DeviceCall::milliseconds() noexcept {
  if (!timed_ || !done()) return std::nullopt;
  try {
    return static_cast<float>(begin_.elapsedTime(after_));
  } catch (...) {
    failure_ = std::current_exception();
    return std::nullopt;
  }
}

}  // namespace rehearse::real
