// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <optional>

#include <rehearse_internal/exec/idle_policy.h>

#include "fabric/device_work.h"

namespace rehearse::real {

// Idleness in real time: being idle means waiting for the devices. If the devices have nothing to do and each rank can
// go on only when a timeout ends its wait, the world hangs for good. The policy reports that at once instead of waiting
// for the timeouts, unless a thread of a library may end a wait.
class DeviceIdlePolicy final : public exec::IdlePolicy {
 public:
  struct Limits {
    // How long ranks may poll something that nobody changes, while no timer runs and no device works. For the same time
    // they may wait in libc, for example for a mutex, because a thread that belongs to no rank may end the wait.
    VirtualDuration stall_timeout = std::chrono::seconds(10);
  };

  // The pause between two polls of the ranks while nothing else happens. It doubles from kNapMin to kNapMax.
  static constexpr VirtualDuration kNapMin = std::chrono::microseconds(1);
  static constexpr VirtualDuration kNapMax = std::chrono::milliseconds(1);
  // While ranks wait for a thread that belongs to no rank, time passes in steps of at most this length. A signal from
  // the thread ends the step.
  static constexpr VirtualDuration kWaitMax = std::chrono::milliseconds(10);

  explicit DeviceIdlePolicy(const Limits& limits) noexcept : limits_(limits) {}

  // Call this before the run. `devices` must outlive this object.
  void watch(DeviceWork& devices) noexcept { devices_ = &devices; }

  // Devices work while ranks run, so ask them.
  void poll() noexcept override {
    if (devices_->poll()) note_progress();
  }
  exec::IdleStep next(const exec::IdleFacts& facts) override;
  // Real time passes whatever ranks do, so its passing says nothing about them.
  std::optional<exec::IdleEnd> time_passed() override { return std::nullopt; }

 private:
  exec::IdleStep next_of_devices(const exec::IdleFacts& facts);
  exec::IdleStep next_of_pollers(const exec::IdleFacts& facts, bool moved);
  exec::IdleStep next_of_waiters(const exec::IdleFacts& facts);

  DeviceWork* devices_ = nullptr;
  const Limits limits_;
  VirtualDuration nap_{};
  std::optional<VirtualTime> polling_since_;  // since when ranks have polled without progress
  std::optional<VirtualTime> waiting_since_;  // since when there was neither progress nor a step of a rank
};

}  // namespace rehearse::real
