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

// By what one rank has drawn since its generator was set last. It grows with the lines that draw and with what they are
// given, up to 100,000.
class DrawLog {
 public:
  void note(Draw draw);

  // The generator was set: what was drawn before is of no account.
  void clear();

  // Since it was asked under that name last, from the start the first time; in order of each draw's first time.
  std::vector<Drawn> take(const std::string& name);

 private:
  std::map<Draw, std::size_t> places_;  // in counts_; for lookup only
  std::vector<Drawn> counts_;
  std::map<std::string, std::vector<std::uint64_t>> taken_;  // by the name: times of counts_, when it was asked last
};

// By what two ranks have drawn, and not as often as the other: "aten::rand(size=[5]) at job.cpp:12: once on rank 3,
// never on rank 0"; the first three of them, and how many more there are.
std::vector<std::string> other_draws(int rank, const std::vector<Drawn>& draws, int other,
                                     const std::vector<Drawn>& of_other);

}  // namespace rehearse::checks
