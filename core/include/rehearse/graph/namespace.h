// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace rehearse::graph {

// Gives out unique names by the rules of torch.fx (fx/graph.py, _Namespace): characters that no Python
// identifier has become '_', a name that is taken gets the next number (add, add_1, add_2), Python's keywords
// and builtins are never given out (input becomes input_1). Same candidates in the same order: same names.
class Namespace {
 public:
  // The name for `candidate`, from now on taken.
  std::string create_name(std::string_view candidate);

  bool is_taken(std::string_view name) const { return taken_.contains(std::string(name)); }

 private:
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, std::int64_t> last_number_;
  // base: every number from 1 to this one is taken. Where fx tries them all again, we go on behind them.
  std::unordered_map<std::string, std::int64_t> taken_up_to_;
};

// What fx calls a node before it is made unique: the last part of a function's name, in snake case, lower
// case. `is_function`: the target names a callable (`torch.ops.aten.add.Tensor` gives add.tensor,
// `_operator.getitem` gives getitem), else an attribute, module, method or input (`layers.0.Weight` gives
// layers.0.weight).
std::string name_from_target(std::string_view target, bool is_function);

}  // namespace rehearse::graph
