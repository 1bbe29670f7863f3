// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>

#include <rehearse_internal/comm/several_works.h>

#include "comm/work/rank_work.h"

namespace rehearse::comm {

// The calls that a rank makes on a group between startCoalescing() and endCoalescing(): its collectives as one work,
// then its sends and receives.
class CoalescedWork final : public SeveralWorks<RankWork> {
 public:
  using SeveralWorks::SeveralWorks;

  // `timeout` limits the wait for all works together.
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  void synchronize() override {}

 private:
  class Waiting;
};

}  // namespace rehearse::comm
