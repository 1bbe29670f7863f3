// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <ATen/record_function.h>
#include <c10/core/Device.h>

#include "torch_state/thread_exit.h"

namespace rehearse::torch_state {

// The part of a fiber's state that the fiber's image (exec::RankState) does not contain.
struct FiberRecord {
  explicit FiberRecord(const std::vector<std::span<std::byte>>& owned, int the_rank = -1)
      : rank(the_rank), exits(owned) {}

  const int rank;        // -1: the host
  std::size_t slot = 0;  // index among the records of a TorchRankState
  ThreadExitList exits;
  std::optional<at::RecordFunctionTLS> record_function;  // while the fiber does not run; empty for the default
  c10::DeviceIndex device = -1;  // the current device, while the fiber does not run; -1: ranks have no devices
};

}  // namespace rehearse::torch_state
