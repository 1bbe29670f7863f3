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

// Collects the checks that the program asked for and that some ranks did not reach in time. Such a check was not made,
// or was made without these ranks.
class MissedRounds {
 public:
  // Adds a round that is no longer awaited: the run has ended, or (`gave_up`) too many rounds are open. If it is
  // comparable, the ranks that had arrived were compared with each other.
  template <class Shown>
  void add(const Round<Shown>& round, bool gave_up) {
    add(round.name, round.number, {round.missing(), round.is_comparable(), gave_up});
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
