// SPDX-License-Identifier: BSD-3-Clause
#include "finding.h"

#include <utility>

#include <rehearse/exec/observer.h>

namespace rehearse::sim {

void Finding::stop_here(std::string what) {
  tell(std::move(what));
  const exec::FixedObserver observer("what a checker has found");
  for (;;) the_end_.wait(observer);
}

}  // namespace rehearse::sim
