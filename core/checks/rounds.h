// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace rehearse::checks {

// The n-th check of a name, to which each rank comes when it comes: nobody waits. `Shown` is what they show there.
template <class Shown>
struct Round {
  std::string key;  // the name, and what else tells it from others of that name
  std::string name;
  std::uint64_t number = 0;  // from 1 on
  std::vector<int> of;       // who is to come, by rank
  std::vector<int> here;     // in order of their coming
  bool is_asked = true;      // by the program, which is told of ranks that do not come
  Shown shown;

  bool is_full() const noexcept { return here.size() == of.size(); }
  std::vector<int> missing() const {
    auto ranks = of;
    std::erase_if(ranks, [&](int rank) { return std::find(here.begin(), here.end(), rank) != here.end(); });
    return ranks;
  }
};

// So many rounds of a name are kept open for ranks that are late, or will never come.
inline constexpr std::size_t kRoundsOpenMost = 64;

// The rounds of one checker to which ranks have yet to come. Plain data of a world: no locks, no waits.
template <class Shown>
class Rounds {
 public:
  // The round that `rank` comes to now; null where that has been given up.
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
    round.here.push_back(rank);
    return &round;
  }

  void close(const Round<Shown>& round) { open_.erase({round.key, round.number}); }

  // The oldest of a key that has too many; it is not waited for any more. Close it. Null: there is none.
  Round<Shown>* overdue(const std::string& key) {
    const auto first = open_.lower_bound({key, 0});
    std::size_t count = 0;
    for (auto each = first; each != open_.end() && each->first.first == key; ++each) ++count;
    if (count <= kRoundsOpenMost) return nullptr;
    given_up_[key] = first->second.number;
    return &first->second;
  }

  // By key and number.
  std::map<std::pair<std::string, std::uint64_t>, Round<Shown>>& open() noexcept { return open_; }

 private:
  std::map<std::pair<std::string, int>, std::uint64_t> counts_;  // by key and rank
  std::map<std::string, std::uint64_t> given_up_;                // by key: up to this number
  std::map<std::pair<std::string, std::uint64_t>, Round<Shown>> open_;
};

}  // namespace rehearse::checks
