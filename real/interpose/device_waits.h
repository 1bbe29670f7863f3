// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <vector>

#include <rehearse/exec/observer.h>
#include <rehearse/exec/wait_queue.h>

#include "fabric/device_work.h"

namespace rehearse::real {

// The work that a run's ranks have given to devices, and the ranks that wait for a device by calls of CUDA's run-time
// library. As long as one of them waits, the world is not at a standstill. The run lends it to its ranks
// (exec::WorldLocal), so that their calls find it.
class DeviceWaits final : public DeviceWork {
 public:
  // `others`: other work on devices; must outlive this object.
  explicit DeviceWaits(DeviceWork& others) noexcept : others_(others) {}

  // Suspends the calling rank until `is_over` returns true. poll() asks it, in any context. Throws RankAborted if the
  // world ends first.
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
