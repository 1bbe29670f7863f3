// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <rehearse/job/cause.h>

namespace rehearse::sim {

// A part of a headline, with the causes that it names.
struct CauseText {
  std::string text;  // empty: nothing is known
  std::vector<Cause> causes{};
};

}  // namespace rehearse::sim
