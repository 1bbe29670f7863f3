// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <rehearse/job/report.h>
#include <rehearse_internal/exec/executor.h>

#include <rehearse_internal/job/run_record.h>
#include "report/ranks/places.h"

namespace rehearse::sim {

// How each rank ended, and where.
class RankOutcomes {
 public:
  // `record` and `places` must outlive this object.
  RankOutcomes(int ranks, const RunRecord& record, const Places& places);

  const std::vector<RankLine>& lines() const noexcept { return lines_; }
  const RankLine& line_of(int rank) const { return lines_[static_cast<std::size_t>(rank)]; }

  const Places& places() const noexcept { return places_known_; }

  // The place that `fiber` has; if it has none, the fiber's place when the world ended. If the fiber had ended by then,
  // because its wait became its rank's failure: the place at which the exception was thrown. Empty if unknown.
  Place place_of(const exec::BlockedFiber& fiber) const;

  // The call of the store in which the fiber polls, if it is in a pause between two polls, or if its last poll has just
  // ended; null: it is not, or nobody knows. Lives as long as the record.
  const exec::Wait* poll_of(const exec::BlockedFiber& fiber) const;

  // The place of the call; empty unless call sites were captured.
  Place place_of(const comm::PendingOperation& call) const;

 private:
  RankLine& line_of(int rank) { return lines_[static_cast<std::size_t>(rank)]; }
  // If a rank waits for its own thread, what the thread waits for explains more.
  const exec::BlockedFiber& root_of(const exec::BlockedFiber& fiber, const std::vector<exec::BlockedFiber>& all) const;
  std::string doing_of(const exec::BlockedFiber& fiber) const;
  void blocked(const exec::BlockedFiber& fiber);
  void failed(const exec::RankFailure& failure);
  void mismatched(RankLine& line);
  void unwound(const exec::Unwinding& unwinding, RankLine& line);
  void hung(const exec::BlockedFiber& fiber);
  Place with_call(Place place, int rank, const std::string& call) const;

  const RunRecord& record_;
  const Places& places_known_;
  const std::vector<exec::RankFailure> all_failures_;
  std::vector<RankLine> lines_;
  std::map<std::pair<int, std::uint32_t>, Place> places_;               // for blocked fibers, by rank and fiber_of_rank
  std::map<std::pair<int, std::string>, const exec::CallSite*> calls_;  // places of pending calls, by rank and text
  std::map<int, const exec::RankFailure*> failures_;                    // each rank's last failure
};

}  // namespace rehearse::sim
