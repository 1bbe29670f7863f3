// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <rehearse/exec/time.h>

namespace rehearse {

// The outcome of one planned fault.
struct FaultLine {
  struct Firing {
    int rank = -1;
    std::string call;  // "allreduce #12 on group "world""; empty: the rank was in no call
    VirtualTime at{};
    std::optional<VirtualTime> began_again = {};  // if the fault ended an incarnation: when the next one began
  };

  std::string fault;  // as the user wrote it: "crash rank=3 at=allreduce#12"
  bool optional = false;
  std::uint64_t times = 0;
  std::vector<Firing> fired;  // the first few
  std::string why_not;        // set if the fault never fired, or did not fire on all ranks that it names
};

}  // namespace rehearse
