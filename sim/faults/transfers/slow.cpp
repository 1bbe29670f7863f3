// SPDX-License-Identifier: BSD-3-Clause
#include "slow.h"

#include <algorithm>
#include <cmath>

namespace rehearse::sim {
namespace {

VirtualDuration times(VirtualDuration duration, double factor) {
  return VirtualDuration(std::llround(static_cast<double>(duration.count()) * factor));
}

}  // namespace

double slowness(const std::vector<Fault>& faults, int rank) {
  double factor = 1;
  for (const auto& fault : faults) {
    const bool is_of_rank =
        fault.ranks.empty() || std::find(fault.ranks.begin(), fault.ranks.end(), rank) != fault.ranks.end();
    if (fault.verb == Fault::Verb::slow && is_of_rank) factor *= fault.factor;
  }
  return factor;
}

ComputeModel slowed(ComputeModel model, double factor) {
  model.flops_per_second /= factor;
  model.bytes_per_second /= factor;
  model.per_operator = times(model.per_operator, factor);
  return model;
}

SlowCost::SlowCost(const fakes::CostModel& below, const std::vector<Fault>& faults, int ranks) : below_(below) {
  for (int rank = 0; rank < ranks; ++rank) factors_.push_back(slowness(faults, rank));
}

VirtualDuration SlowCost::duration(const comm::Transfer& transfer) const {
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
  return factor > 1 ? times(duration, factor) : duration;
}

}  // namespace rehearse::sim
