// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse_internal/exec/clock.h>
#include <rehearse_internal/exec/machine_time.h>

namespace rehearse::real {

// The machine's time; zero is the time of construction.
class RealClock final : public exec::Clock {
 public:
  // The longest time that advance_to() sleeps before it returns. So an idle run notices an interrupt with at most this
  // delay.
  static constexpr VirtualDuration kSleepMax = std::chrono::milliseconds(10);

  VirtualTime now() const noexcept override { return VirtualTime{} + (exec::machine_time() - epochs_.monotonic); }
  // Ranks read the machine's own clocks.
  Epochs epochs() const noexcept override { return epochs_; }
  bool passes_by_itself() const noexcept override { return true; }
  void advance_to(VirtualTime time) noexcept override;

 private:
  const Epochs epochs_{.realtime = exec::machine_wall_time(), .monotonic = exec::machine_time()};
};

}  // namespace rehearse::real
