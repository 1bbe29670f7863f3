// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <rehearse/exec/call_site.h>
#include <rehearse/exec/place.h>

namespace rehearse::checks {

// An operator that wrote to a watched tensor.
struct Write {
  // Another input of the operator: a tensor, and the hash of its values.
  struct Operand {
    std::string name;          // name of the operator's argument: "other"
    bool is_gradient = false;  // the gradient of the written tensor
    std::uint64_t hash = 0;
  };

  std::string tensor;
  std::string op;  // "aten::add_"
  exec::CallSite where;
  std::uint64_t after = 0;  // hash of the result
  std::vector<Operand> operands;
  std::string numbers;         // "alpha=-0.1": the operator's arguments that are numbers
  std::uint64_t gradient = 0;  // hash of the tensor's gradient; 0: it has none
};

struct Divergence {
  std::string text;
  std::map<int, Place> places;  // where ranks made the first write that differs; empty: an input differed before
};

// Compares, in order, what the ranks in `here` wrote, and describes the first write that differs. `writes`: by rank,
// its writes since the previous check. If all writes are the same on these ranks, says so. Empty if `writes` lacks one
// of these ranks, because it was not watched.
Divergence first_divergence(const std::map<int, std::vector<Write>>& writes, const std::vector<int>& here);

}  // namespace rehearse::checks
