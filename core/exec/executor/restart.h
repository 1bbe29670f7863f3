// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <utility>

#include <rehearse_internal/exec/timer_queue.h>

#include "executor_impl.h"

namespace rehearse::exec {

// A rank begins again when this fires.
class RankExecutor::Impl::Restart final : public Timer {
 public:
  Restart(Impl& executor, int rank, std::function<void()> before)
      : executor_(executor), rank_(rank), before_(std::move(before)) {}
  ~Restart() override { executor_.timers.cancel(*this); }

  int rank() const noexcept { return rank_; }
  void tell() const {
    if (before_) before_();
  }

 private:
  void fire() override { executor_.begin_again(*this); }

  Impl& executor_;
  const int rank_;
  const std::function<void()> before_;
};

}  // namespace rehearse::exec
