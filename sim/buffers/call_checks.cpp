// SPDX-License-Identifier: BSD-3-Clause
#include "call_checks.h"

namespace rehearse::sim {

CallChecks::CallChecks(const WorldOptions& options, exec::RankExecutor& executor,
                       comm::CommunicatorOptions& communication, fakes::FakeFabric& fabric) {
  const bool buffers = options.check_buffers.value_or(false), sharing = options.check_sharing.value_or(false);
  if (!buffers && !sharing) return;
  calls_.emplace(executor, communication.gate, options.call_sites);
  if (buffers) calls_->add(buffers_.emplace(executor, *calls_));
  if (sharing) calls_->add(sharing_.emplace(executor));
  communication.gate = &*calls_;
  fabric.ask_before_moving(&*calls_);
}

std::vector<OperatorWatcher*> CallChecks::watchers_with(OperatorWatcher* another, int rank) {
  std::vector<OperatorWatcher*> watchers;
  if (buffers_) watchers.push_back(&buffers_->operators_of(rank));
  if (another != nullptr) watchers.push_back(another);
  return watchers;
}

}  // namespace rehearse::sim
