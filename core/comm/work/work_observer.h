// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/exec/observer.h>

#include "comm/work/rank_work.h"

namespace rehearse::comm {

// Whatever waits until a work is complete.
class WorkObserver final : public exec::Observer {
 public:
  explicit WorkObserver(const RankWork& work) : work_(work) {}
  std::string describe() const override { return work_.describe(); }
  std::string call() const override { return title_of(work_); }
  std::vector<int> waits_for() const override { return work_.waits_for(); }
  std::uint64_t fingerprint() const override { return work_.fingerprint; }

 private:
  const RankWork& work_;
};

}  // namespace rehearse::comm
