// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace rehearse::graph {

// Makes unique names by the rules of torch.fx (fx/graph.py, _Namespace): each run of characters that are not allowed in
// Python identifiers becomes one '_', a taken name gets the next number (add, add_1, add_2), and Python's keywords and
// builtins, except None, always get a number (input becomes input_1). The same candidates in the same order give the
// same names.
class Namespace {
 public:
  // Returns a name for `candidate` and marks it as taken.
  std::string create_name(std::string_view candidate);

  bool is_taken(std::string_view name) const { return taken_.contains(std::string(name)); }

 private:
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, std::int64_t> last_number_;
  // By base name: every number from 1 to this one is taken. fx tries these again; we start after them.
  std::unordered_map<std::string, std::int64_t> taken_up_to_;
};

// The name that fx derives from a node's target, before create_name() makes it unique. It is in lower-case snake case.
// `is_function`: the target names a callable. An operator's name keeps its overload (`torch.ops.aten.add.Tensor` gives
// add.tensor). For other callables, only the last part remains (`_operator.getitem` gives getitem). Without
// `is_function`, the target names an attribute, module, method or input, and all of it remains (`layers.0.Weight` gives
// layers.0.weight), except the underscores around a name like `__add__`.
std::string name_from_target(std::string_view target, bool is_function);

}  // namespace rehearse::graph
