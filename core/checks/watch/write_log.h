// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <rehearse/exec/call_site.h>

namespace rehearse::checks {

// An operator that wrote to a watched tensor.
struct Write {
  // What it read besides: a tensor and the hash of its values.
  struct Operand {
    std::string name;          // of the operator's argument: "other"
    bool is_gradient = false;  // that of the written tensor
    std::uint64_t hash = 0;
  };

  std::string tensor;
  std::string op;  // "aten::add_"
  exec::CallSite where;
  std::uint64_t after = 0;  // hash of what it left there
  std::vector<Operand> operands;
  std::string numbers;  // "alpha=-0.1": its other arguments
};

// What the ranks `here` did since they were equal, in their order: the first of it that was not the same on all of
// them, in words; nothing where all did the same, or nobody looked.
std::vector<std::string> first_divergence(const std::map<int, std::vector<Write>>& writes,
                                          const std::vector<int>& here);

}  // namespace rehearse::checks
