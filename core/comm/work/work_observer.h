// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <rehearse/exec/observer.h>

#include "comm/work/rank_work.h"

namespace rehearse::comm {

// Describes a wait for the completion of a work.
class WorkObserver final : public exec::Observer {
 public:
  explicit WorkObserver(const RankWork& work) : work_(work) {}
  std::string describe() const override {
    const auto* const match = work_.match();
    return match != nullptr ? match->describe(work_) : title_of(work_) + " (the world is over)";
  }
  std::string call() const override { return title_of(work_); }
  // Empty: no rank, or unknown.
  std::vector<int> waits_for() const override {
    const auto* const match = work_.match();
    return match != nullptr ? match->waits_for(work_) : std::vector<int>{};
  }
  std::uint64_t fingerprint() const override { return work_.fingerprint; }

 private:
  const RankWork& work_;
};

}  // namespace rehearse::comm
