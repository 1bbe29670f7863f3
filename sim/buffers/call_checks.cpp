// SPDX-License-Identifier: BSD-3-Clause
#include "call_checks.h"

#include <functional>

#include <rehearse_internal/operators/seen_operators.h>

namespace rehearse::sim {

CallChecks::CallChecks(const WorldOptions& options, exec::RankExecutor& executor,
                       comm::CommunicatorOptions& communication, fakes::FakeFabric& fabric) {
  const bool on = options.check_level != CheckLevel::none;
  const bool buffers = options.check_buffers.value_or(on), sharing = options.check_sharing.value_or(on);
  if (!buffers && !sharing) return;
  calls_.emplace(executor, communication.interceptor, options.call_sites);
  if (buffers) {
    calls_->add(buffers_.emplace(executor, *calls_));
    executor.do_helpers_work_by([this](int rank, const std::function<void()>& work) {
      const auto watcher = buffers_->watch_fiber_of(rank);
      const operators::SeenOperators seen({watcher.get()});
      work();
    });
  }
  if (sharing) calls_->add(sharing_.emplace(executor));
  if (on) {
    calls_->add(training_.emplace(options.ranks));
    lent_training_.emplace(*training_);
  }
  communication.interceptor = &*calls_;
  fabric.ask_before_moving(&*calls_);
}

std::unique_ptr<operators::OperatorWatcher> CallChecks::watch_main_of(int rank) {
  return buffers_ ? buffers_->watch_fiber_of(rank) : nullptr;
}

std::vector<int> CallChecks::conclude(checks::RankRemarks& remarks) const {
  if (training_) training_->leave_to(remarks);
  if (buffers_ && !buffers_->blamed().empty()) return buffers_->blamed();
  return sharing_ ? sharing_->blamed() : std::vector<int>();
}

}  // namespace rehearse::sim
