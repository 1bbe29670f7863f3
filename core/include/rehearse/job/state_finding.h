// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

namespace rehearse {

// What a state checker found.
struct StateFinding {
  std::string headline;              // on one line
  std::vector<int> ranks;            // whose state it is about: where most ranks agree, the others
  std::vector<std::string> details;  // a line each
};

}  // namespace rehearse
