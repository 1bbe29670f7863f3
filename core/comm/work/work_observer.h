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
  // Empty: no rank, or unknown.
  std::vector<int> waits_for() const {
    const auto* const match = work_.match();
    return match != nullptr ? match->waits_for(work_) : std::vector<int>{};
  }

 private:
  exec::Wait describe() const override {
    const auto* const match = work_.match();
    const auto title = title_of(work_);
    if (work_.callbacks_due()) return {"the callbacks of " + title, title, {}, false, exec::Wait::Kind::call};
    return {match != nullptr ? match->describe(work_) : title + " (the world is over)", title, waits_for(), false,
            exec::Wait::Kind::call};
  }

  const RankWork& work_;
};

}  // namespace rehearse::comm
