// SPDX-License-Identifier: BSD-3-Clause
#include "initialisations.h"

#include <fmt/format.h>

#include "exec/fiber/fiber.h"
#include "exec/wait/suspension.h"

namespace rehearse::exec::interpose {

void Initialisations::wait(const void* object, Fiber& fiber, const Observer& observer) {
  if (!waiters_.wait_or_end(object, observer)) abort_wait(fiber, observer);
}

Wait InitialisationObserver::describe() const {
  return {.waits_on = fmt::format("the end of {} that rank {} has begun", what_, by_.rank),
          .waits_for = {by_.rank},
          .kind = Wait::Kind::once,
          .object = what_};
}

}  // namespace rehearse::exec::interpose
