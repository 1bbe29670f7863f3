// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <ATen/core/ivalue.h>

#include <rehearse/compile/leaf.h>

#include "compile/arguments/input_binding.h"

namespace rehearse::compiler {

// Keeps the inputs of one graph between calls. A graph may have hundreds of parameters, and counting references to all
// of them would cost more than all guards. So a captured tensor stays in the buffer unless a run has moved it out; a
// call only fills in the other inputs. Calls may overlap; each has its own inputs.
class InputBuffer {
 public:
  // `bindings` must be the same in each call.
  std::vector<c10::IValue> take(const std::vector<InputBinding>& bindings, const LeafList& leaves);
  // Call it after the run. Drops references to the call's own values.
  void give_back(std::vector<c10::IValue> inputs, const std::vector<InputBinding>& bindings);

 private:
  std::vector<c10::IValue> inputs_;  // empty while a call uses them
};

}  // namespace rehearse::compiler
