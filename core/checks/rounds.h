// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <rehearse_internal/exec/check.h>

namespace rehearse::checks {

// One round of checks: the n-th check of a name on every rank. Ranks arrive at their own time and do not wait for each
// other. `Shown`: the state that they show.
template <class Shown>
struct Round {
  std::string key;  // the name, and what distinguishes it from other checks of the name
  std::string name;
  std::uint64_t number = 0;  // from 1
  std::vector<int> of;       // the ranks that should arrive, ascending
  std::vector<int> here;     // in order of arrival
  bool is_asked = true;      // the program asked for it, so reports mention ranks that never arrive
  bool is_judged = true;     // a difference ends the run; else it is a remark
  bool needs_all = false;    // without all ranks there is nothing to compare
  Shown shown;

  bool is_full() const noexcept { return here.size() == of.size(); }
  bool is_comparable() const noexcept { return needs_all ? is_full() : here.size() > 1; }
  std::vector<int> missing() const {
    auto ranks = of;
    std::erase_if(ranks, [&](int rank) { return std::ranges::find(here, rank) != here.end(); });
    return ranks;
  }
};

// How many rounds of a name stay open for ranks that are late or never arrive.
inline constexpr std::size_t kRoundsOpenMost = 64;

// The open rounds of one checker. Plain data of a world: no locks, no waits.
template <class Shown>
class Rounds {
 public:
  // The round at which `rank` arrives now; null if that round was given up.
  Round<Shown>* next(int rank, const std::string& key, const std::string& name, const std::vector<int>& of) {
    const auto number = ++counts_[{key, rank}];
    if (number <= given_up_[key]) return nullptr;
    auto& round = open_[{key, number}];
    if (round.number == 0) {
      round.key = key;
      round.name = name;
      round.number = number;
      round.of = of;
    }
    REHEARSE_CHECK(std::ranges::find(round.here, rank) == round.here.end(), rank, name, number);
    round.here.push_back(rank);
    return &round;
  }

  // Whether this round of the key was never compared.
  bool was_given_up(const std::string& key, std::uint64_t number) const {
    const auto last = given_up_.find(key);
    return last != given_up_.end() && number <= last->second;
  }

  // At how many rounds of the key `rank` has arrived.
  std::uint64_t count(const std::string& key, int rank) { return counts_[{key, rank}]; }

  void close(const Round<Shown>& round) {
    const auto number = round.number;
    const auto closed = open_.erase({round.key, number});
    REHEARSE_CHECK(closed == 1, number);
  }

  // If a key has too many open rounds, gives up the oldest and returns it; the caller must close it. Otherwise returns
  // null.
  Round<Shown>* overdue(const std::string& key) {
    const auto first = open_.lower_bound({key, 0});
    std::size_t count = 0;
    for (auto each = first; each != open_.end() && each->first.first == key; ++each) ++count;
    if (count <= kRoundsOpenMost) return nullptr;
    given_up_[key] = first->second.number;
    return &first->second;
  }

  std::map<std::pair<std::string, std::uint64_t>, Round<Shown>>& open() noexcept { return open_; }

 private:
  std::map<std::pair<std::string, int>, std::uint64_t> counts_;  // by key and rank
  std::map<std::string, std::uint64_t> given_up_;                // by key: all rounds up to this number
  std::map<std::pair<std::string, std::uint64_t>, Round<Shown>> open_;
};

}  // namespace rehearse::checks
