// SPDX-License-Identifier: BSD-3-Clause
#include <functional>
#include <memory>
#include <optional>

#include <rehearse_internal/checks/rank_remarks.h>
#include <rehearse_internal/exec/world_local.h>
#include <rehearse_internal/operators/seen_operators.h>

#include "buffer_check.h"
#include "call_watch.h"
#include "layers/layers.h"
#include "lone_training.h"
#include "sharing_check.h"

namespace rehearse::sim {
namespace {

// The memory checkers.
class CallChecks final : public Layer {
 public:
  CallChecks(const Ground& ground, bool buffers, bool sharing, bool training)
      : calls_(ground.executor, ground.options.call_sites) {
    if (buffers) {
      calls_.add(buffers_.emplace(ground.executor, calls_));
      ground.executor.do_helpers_work_by([this](int rank, const std::function<void()>& work) {
        const operators::SeenOperators seen({buffers_->watch_fiber_of(rank)});
        work();
      });
    }
    if (sharing) calls_.add(sharing_.emplace(ground.executor));
    if (training) {
      calls_.add(training_.emplace(ground.options.ranks));
      lent_training_.emplace(*training_);
    }
    ground.bottom.ask_before_moving(calls_);
  }

  comm::CallInterceptor* interceptor() noexcept override { return &calls_; }

  // Helper fibers, which run a rank's threads and callbacks, have watchers of their own.
  std::shared_ptr<operators::OperatorWatcher> watcher_of(int rank) override {
    return buffers_ ? buffers_->watch_fiber_of(rank) : nullptr;
  }

  void leave(RunRecord& record) override {
    if (training_) training_->leave_to(*checks::rank_remarks());
    if (sharing_ && !sharing_->blamed().empty()) record.blamed = sharing_->blamed();
    if (buffers_ && !buffers_->blamed().empty()) record.blamed = buffers_->blamed();
  }

 private:
  CallWatch calls_;
  std::optional<BufferCheck> buffers_;
  std::optional<SharingCheck> sharing_;
  std::optional<LoneTraining> training_;
  std::optional<exec::WorldLocal<LoneTraining>::Lent> lent_training_;
};

}  // namespace

std::unique_ptr<Layer> make_call_checks(const Ground& ground) {
  const auto& options = ground.options;
  const bool on = options.check_level != CheckLevel::none;
  const bool buffers = options.check_buffers.value_or(on), sharing = options.check_sharing.value_or(on);
  return buffers || sharing ? std::make_unique<CallChecks>(ground, buffers, sharing, on) : nullptr;
}

}  // namespace rehearse::sim
