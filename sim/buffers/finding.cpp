// SPDX-License-Identifier: BSD-3-Clause
#include "finding.h"

#include <utility>

#include <rehearse/exec/observer.h>
#include <rehearse_internal/exec/this_rank.h>

namespace rehearse::sim {

void Finding::stop_here(std::string what) {
  tell(std::move(what));
  exec::this_rank::wait_for_the_end(exec::FixedObserver("a call in which a checker found an error"));
}

}  // namespace rehearse::sim
