// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <ATen/core/ivalue.h>

#include <rehearse/compile/leaf.h>

#include "compile/arguments/input_binding.h"

namespace rehearse::compiler {

// The inputs of one graph, from call to call. Of hundreds of parameters only those are put in place again that the last
// run took away: counting references to each would cost more than all guards. Calls may overlap: each has inputs of its
// own.
class InputBuffer {
 public:
  // `bindings`: the same in each call.
  std::vector<c10::IValue> take(const std::vector<InputBinding>& bindings, const LeafList& leaves);
  // After the run. What belongs to the call is let go of.
  void give_back(std::vector<c10::IValue> inputs, const std::vector<InputBinding>& bindings);

 private:
  std::vector<c10::IValue> inputs_;  // empty while a call has them
};

}  // namespace rehearse::compiler
