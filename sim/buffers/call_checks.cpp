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

operators::OperatorWatcher* CallChecks::watcher_of(int rank) noexcept {
  return buffers_ ? &buffers_->operators_of(rank) : nullptr;
}

}  // namespace rehearse::sim
