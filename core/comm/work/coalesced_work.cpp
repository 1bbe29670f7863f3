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
  Waiting(const Works& works, const RankWork& awaited) : works_(works), awaited_(awaited) {}

  std::string describe() const override {
    return join([](const RankWork& work) { return WorkObserver(work).describe(); });
  }
  std::string call() const override {
    return join([](const RankWork& work) { return title_of(work); });
  }
  std::uint64_t fingerprint() const override { return awaited_.fingerprint; }

  std::vector<int> waits_for() const override {
    std::set<int> ranks;
    for (const auto& work : works_) {
      if (!work->incomplete()) continue;
      const auto missing = WorkObserver(*work).waits_for();
      ranks.insert(missing.begin(), missing.end());
    }
    return {ranks.begin(), ranks.end()};
  }

 private:
  template <class TextOf>
  std::string join(TextOf&& text_of) const {
    std::string text;
    for (const auto& work : works_) {
      if (work->incomplete()) text += (text.empty() ? "" : " and ") + text_of(*work);
    }
    return text;
  }

  const Works& works_;
  const RankWork& awaited_;
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
    whole = work->wait_as_part(timeout, Waiting(works, *work)) && whole;
  }
  exec::this_rank::end_call();
  return whole;
}

}  // namespace rehearse::comm
