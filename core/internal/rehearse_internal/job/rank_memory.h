// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <rehearse/exec/call_site.h>

namespace rehearse {

// The memory that a rank's tensors took, if it was counted.
struct RankMemory {
  struct Taken {
    std::uint64_t bytes = 0;
    exec::CallSite where;  // where it was allocated; empty unless captured
  };

  int rank = -1;
  std::uint64_t most = 0;    // the peak, in bytes
  std::vector<Taken> taken;  // at the peak, by place; the largest first
};

}  // namespace rehearse
