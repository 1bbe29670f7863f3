// SPDX-License-Identifier: BSD-3-Clause
#include "work_record.h"

#include <chrono>

namespace rehearse::comm {

std::shared_ptr<c10d::WorkInfo> WorkRecord::info(c10d::OpType type, std::uint64_t sequence) const {
  using Clock = std::chrono::steady_clock;
  const auto at = [](VirtualTime time) {
    return Clock::time_point(std::chrono::duration_cast<Clock::duration>(time.time_since_epoch()));
  };
  return std::make_shared<c10d::WorkInfo>(type, sequence, at(started_), at(ended_), duration());
}

}  // namespace rehearse::comm
