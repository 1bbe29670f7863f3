// SPDX-License-Identifier: BSD-3-Clause
#include "initialisations.h"

#include <fmt/format.h>

#include "exec/fiber/fiber.h"
#include "exec/wait/suspension.h"

namespace rehearse::exec::interpose {

void Initialisations::wait(const void* object, Fiber& fiber, const Observer& observer) {
  if (!waiters_.wait_or_end(object, observer)) abort_wait(fiber, observer);
}

std::string InitialisationObserver::describe() const {
  return fmt::format("the end of {} that rank {} has begun", what_, by_.rank);
}

std::vector<int> InitialisationObserver::waits_for() const { return {by_.rank}; }

}  // namespace rehearse::exec::interpose
