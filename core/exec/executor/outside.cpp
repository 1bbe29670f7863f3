// SPDX-License-Identifier: BSD-3-Clause
// What comes from threads that run no rank.
#include "outside.h"

#include <stdexcept>

#include <fmt/format.h>

#include <rehearse_internal/exec/inbox.h>

#include "exec/interpose/world_state.h"
#include "executor_impl.h"

namespace rehearse::exec {

Inbox::Inbox(RankExecutor& executor) : outside_(executor.impl().outside) {
  if (outside_ != nullptr) return;
  throw std::logic_error(
      "an Inbox was made for an executor whose clock stands still while ranks run: what threads bring would come at "
      "another time in each run; use RankExecutor::post() on the executor's own thread");
}

bool Inbox::post(int rank, std::function<void()> work) const { return outside_->post({rank, std::move(work)}); }

Inbox::Errand::Errand(const Inbox& inbox) : outside_(inbox.outside_) { outside_->begin_errand(); }

Inbox::Errand::~Errand() {
  if (outside_ != nullptr) outside_->end_errand();
}

void RankExecutor::Impl::take_from_outside() noexcept {
  hear_doorbell();
  interposed->outside_waits.wake_signalled();
  try {
    for (auto& posted : outside->take()) {
      if (posted.rank < 0 || posted.rank >= options.ranks) {
        throw std::out_of_range(
            fmt::format("work was posted for rank {}; the world has {} ranks", posted.rank, options.ranks));
      }
      post(posted.rank, std::move(posted.work));
    }
  } catch (...) {
    error_ = std::current_exception();
    stop(Ending::stopped, "what came from another thread could not be begun");
  }
}

}  // namespace rehearse::exec
