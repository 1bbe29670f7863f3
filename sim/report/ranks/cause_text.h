// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <rehearse/job/cause.h>

namespace rehearse::sim {

// A part of a headline, with the causes that it names.
struct CauseText {
  std::string text;  // empty: nothing is known
  std::vector<Cause> causes{};

  bool has(Cause::Kind kind) const {
    return std::ranges::any_of(causes, [kind](const Cause& cause) { return cause.kind == kind; });
  }

  CauseText& operator+=(const CauseText& more) {
    text += more.text;
    causes.insert(causes.end(), more.causes.begin(), more.causes.end());
    return *this;
  }
};

}  // namespace rehearse::sim
