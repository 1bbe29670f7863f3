// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "checks/rounds.h"

namespace rehearse::checks {

// Checks that a program asked for and to which ranks did not come, so that nothing was compared with theirs.
class MissedRounds {
 public:
  // A round that nobody waits for any more, at the end of the run or (`gave_up`) because too many are open. `compared`:
  // what has come was compared with each other.
  template <class Shown>
  void add(const Round<Shown>& round, bool compared, bool gave_up) {
    add(round.name, round.number, {round.missing(), compared, gave_up});
  }

  // "check #6 of "gradients" was not made: rank 3 did not come"; checks of one name with the same reason share a line.
  std::vector<std::string> lines() const;

 private:
  struct Why {
    std::vector<int> missing;
    bool compared = false;
    bool gave_up = false;
    friend auto operator<=>(const Why&, const Why&) = default;
  };
  struct Missed {
    std::uint64_t count = 0;
    std::uint64_t first = 0;
    std::uint64_t last = 0;
  };

  void add(const std::string& name, std::uint64_t number, Why why);

  std::map<std::pair<std::string, Why>, Missed> missed_;
};

}  // namespace rehearse::checks
