// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <rehearse/exec/call_site.h>

namespace rehearse::checks {

// A call that drew from the rank's default generator.
struct Draw {
  std::string call;  // "aten::randperm(n=18)"
  exec::CallSite where;

  // "aten::randperm(n=18) at data.cpp:12 in shuffle"
  std::string text() const;
  auto operator<=>(const Draw&) const = default;
};

struct Drawn {
  Draw draw;
  std::uint64_t times = 0;
};

// The calls that have drawn numbers on one rank since its generator was last seeded. Grows with the number of different
// call stacks and arguments, up to 100,000 entries.
class DrawLog {
 public:
  void note(Draw draw);

  // The generator was seeded, so earlier draws no longer matter.
  void clear();

  // The draws since the last take() with that name or the last clear(), whichever was later; in the order in which each
  // first happened.
  std::vector<Drawn> take(const std::string& name);

 private:
  std::map<Draw, std::size_t> index_of_;  // the index in counts_ of each draw; never iterated
  std::vector<Drawn> counts_;
  std::map<std::string, std::vector<std::uint64_t>> taken_;  // by name: the counts at its last take()
};

// Draws that two ranks made a different number of times: "aten::rand(size=[5]) at job.cpp:12: once on rank 3, never on
// rank 0". Shows the first three, and how many more there are.
std::vector<std::string> other_draws(int rank, const std::vector<Drawn>& draws, int other,
                                     const std::vector<Drawn>& of_other);

}  // namespace rehearse::checks
