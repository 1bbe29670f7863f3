// SPDX-License-Identifier: BSD-3-Clause
// What comes from threads that run no rank.
#include "outside.h"

#include <stdexcept>
#include <utility>

#include <rehearse_internal/exec/inbox.h>

#include "world_parts.h"

namespace rehearse::exec {

Inbox::Inbox(RankExecutor& executor) : outside_(executor.parts().outside) {
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

}  // namespace rehearse::exec
