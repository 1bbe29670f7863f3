// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <vector>

#include <rehearse/exec/observer.h>
#include <rehearse/exec/wait_queue.h>

#include "fabric/device_work.h"

namespace rehearse::real {

// The work that a run's ranks have given to devices, and the ranks that wait for a device by calls of CUDA's run-time
// library. As long as a rank waits for a device, the world is not at a standstill. The ranks' calls find this object
// through an exec::WorldLocal.
class DeviceWaits final : public DeviceWork {
 public:
  // `others`: other work on devices; must outlive this object.
  explicit DeviceWaits(DeviceWork& others) noexcept : others_(others) {}

  // Suspends the calling rank until `is_over` returns true. poll() calls `is_over`, possibly outside of the rank's
  // fiber. Throws RankAborted if the world ends first.
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
  std::vector<Wait*> waits_;  // in the stack frames of the ranks that wait
};

}  // namespace rehearse::real
