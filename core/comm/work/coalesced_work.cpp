// SPDX-License-Identifier: BSD-3-Clause
#include "coalesced_work.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <rehearse_internal/exec/this_rank.h>

#include "work_observer.h"

namespace rehearse::comm {

// Describes a rank that waits for a coalesced work: lists all incomplete parts, not only the one whose turn it is.
class CoalescedWork::Waiting final : public exec::Observer {
 public:
  explicit Waiting(const Works& works) : works_(works) {}

 private:
  exec::Wait describe() const override {
    exec::Wait all{.waits_on = "", .kind = exec::Wait::Kind::call};
    std::set<int> ranks;
    for (const auto& work : works_) {
      if (!work->incomplete()) continue;
      const auto part = WorkObserver(*work).wait();
      const auto* const separator = all.call.empty() ? "" : " and ";
      all.waits_on += separator + part.waits_on;
      all.call += separator + part.call;
      ranks.insert(part.waits_for.begin(), part.waits_for.end());
    }
    all.waits_for.assign(ranks.begin(), ranks.end());
    return all;
  }

  const Works& works_;
};

bool CoalescedWork::wait(std::chrono::milliseconds timeout) {
  const auto& works = all();
  const bool limited = timeout.count() > 0;
  const auto until = limited ? later(exec::this_rank::now(), timeout) : VirtualTime::max();
  exec::this_rank::begin_call();
  bool whole = true;
  for (const auto& work : works) {
    if (limited && work->incomplete()) {
      timeout = std::max(std::chrono::ceil<std::chrono::milliseconds>(until - exec::this_rank::now()),
                         std::chrono::milliseconds(1));
    }
    whole = work->wait_as_part(timeout, Waiting(works)) && whole;
  }
  exec::this_rank::end_call();
  return whole;
}

}  // namespace rehearse::comm
