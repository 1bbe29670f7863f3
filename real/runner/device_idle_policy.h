// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <optional>

#include <rehearse_internal/exec/idle_policy.h>

#include "fabric/device_work.h"

namespace rehearse::real {

// Idleness over real time: to be idle is to wait for the devices. Where they have nothing to do and no rank can go on
// but by giving up, the world hangs for good; that is told at once, instead of when the timeouts come, unless a thread
// of a library may end a wait.
class DeviceIdlePolicy final : public exec::IdlePolicy {
 public:
  struct Limits {
    // How long ranks may look at something that nobody changes, with no timer running and no device at work. As long
    // they may wait for an object of libc's, which a thread may signal that is no rank's.
    VirtualDuration stall_timeout = std::chrono::seconds(10);
  };

  // Between two looks of those that poll while nothing else happens: they double, up to the longest.
  static constexpr VirtualDuration kNapMin = std::chrono::microseconds(1);
  static constexpr VirtualDuration kNapMax = std::chrono::milliseconds(1);
  // The longest wait for a thread that may come; when it comes the wait is over.
  static constexpr VirtualDuration kWaitMax = std::chrono::milliseconds(10);

  explicit DeviceIdlePolicy(const Limits& limits) noexcept : limits_(limits) {}

  // Before the run; `devices` outlives it.
  void watch(DeviceWork& devices) noexcept { devices_ = &devices; }

  // Devices go on while ranks run.
  void look() noexcept override {
    if (devices_->poll()) note_progress();
  }
  exec::IdleStep next(const exec::IdleFacts& facts) override;
  // Time passes by itself: nothing is concluded from it.
  std::optional<exec::IdleEnd> time_passed() override { return std::nullopt; }

 private:
  exec::IdleStep next_of_devices(const exec::IdleFacts& facts);
  exec::IdleStep next_of_pollers(const exec::IdleFacts& facts, bool moved);
  exec::IdleStep next_of_waiters(const exec::IdleFacts& facts);

  DeviceWork* devices_ = nullptr;
  const Limits limits_;
  VirtualDuration nap_{};
  std::optional<VirtualTime> looking_since_;  // without progress
  std::optional<VirtualTime> waiting_since_;  // without anything that was done
};

}  // namespace rehearse::real
