// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <vector>

#include <rehearse/exec/observer.h>
#include <rehearse/exec/wait_queue.h>

#include "fabric/device_work.h"

namespace rehearse::real {

// What a run's ranks have given to devices, and the ranks that wait for a device by calls of its run-time library:
// where one is left, the world is not at a standstill. Lent to the run's ranks (exec::WorldLocal), whose calls find it
// there.
class DeviceWaits final : public DeviceWork {
 public:
  // `others`: what else is under way on devices; outlives this.
  explicit DeviceWaits(DeviceWork& others) noexcept : others_(others) {}

  // Suspends the calling rank until `is_over` says so, which is asked by poll(), in any context. Throws RankAborted
  // when the world ends before.
  void wait(std::function<bool()> is_over, const exec::Observer& observer);

  bool poll() noexcept override;
  bool pending() const noexcept override { return !waits_.empty() || others_.pending(); }

 private:
  struct Wait {
    std::function<bool()> is_over;
    bool over = false;
    exec::WaitQueue queue;
  };

  DeviceWork& others_;
  std::vector<Wait*> waits_;  // in the frames of those who wait
};

}  // namespace rehearse::real
