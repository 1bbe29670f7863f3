// SPDX-License-Identifier: BSD-3-Clause
#include "slow.h"

#include <algorithm>
#include <cmath>

#include "faults/fault_plan.h"

namespace rehearse::sim {
VirtualDuration slowed(VirtualDuration duration, double factor) {
  return VirtualDuration(std::llround(static_cast<double>(duration.count()) * factor));
}

double slowness(const std::vector<Fault>& faults, int rank) {
  double factor = 1;
  for (const auto& fault : faults) {
    if (fault.verb == Fault::Verb::slow && is_of(fault, rank)) factor *= fault.factor;
  }
  return factor;
}

SlowCost::SlowCost(const fakes::CostModel& below, const std::vector<Fault>& faults, int ranks) : below_(below) {
  const bool any = std::ranges::any_of(faults, [](const Fault& fault) { return fault.verb == Fault::Verb::slow; });
  for (int rank = 0; any && rank < ranks; ++rank) factors_.push_back(slowness(faults, rank));
}

VirtualDuration SlowCost::duration(const comm::Transfer& transfer) const {
  if (factors_.empty()) return below_.duration(transfer);
  const auto factor_of = [this](int rank) { return factors_[static_cast<std::size_t>(rank)]; };
  double factor = 1;
  if (transfer.type == c10d::OpType::SEND) {
    // The two calls of a pair name each other's ranks.
    for (std::size_t end = 0; end < 2; ++end) {
      const int peer = transfer.calls[end]->peer;
      if (peer >= 0) factor = std::max(factor, factor_of(transfer.group->global_rank(peer)));
    }
  } else {
    for (const int rank : transfer.group->ranks) factor = std::max(factor, factor_of(rank));
  }
  const auto duration = below_.duration(transfer);
  return factor > 1 ? slowed(duration, factor) : duration;
}

}  // namespace rehearse::sim
