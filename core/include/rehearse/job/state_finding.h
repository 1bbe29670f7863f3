// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <rehearse/exec/place.h>

namespace rehearse {

// A finding of a state checker.
struct StateFinding {
  std::string headline;              // on one line
  std::vector<int> ranks;            // the ranks with the wrong state: if most ranks agree, the others
  std::vector<std::string> details;  // one line each
  Place where{};                     // the code of ranks.front() that made the state wrong; empty: unknown
};

}  // namespace rehearse
