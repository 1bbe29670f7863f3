// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse/exec/oracle.h>

namespace rehearse::real {

// Ranks run in the order in which they became runnable: this oracle always takes the first option.
class ArrivalOracle final : public Oracle {
 public:
  std::uint32_t choose(ChoiceKind, std::span<const std::uint32_t>, std::span<const std::uint32_t>) override {
    return 0;
  }
};

}  // namespace rehearse::real
