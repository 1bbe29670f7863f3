// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "differential/program/operation.h"
#include "differential/program/program.h"

namespace rehearse_test::differential {

struct CallSpec {
  std::array<std::int64_t, 2> sizes = {3, 5};  // the varying dimensions
  std::int64_t count = 2;                      // the integer argument
  std::int64_t steps = 4;                      // the integer argument that the function may change
  bool grad = true;
  bool training = true;
  bool other_forms = false;  // arguments have other forms of the same sizes: plain tensors become slices, for example
  std::uint64_t data = 0;    // a seed for argument values and random draws
};

// The calls of a test, in order: two with the same sizes, two with other sizes, one without gradients, one in eval
// mode, one with larger sizes, one whose sizes are 1, and one with other forms. The calls without gradients, in eval
// mode and with other forms have the sizes of the first call.
std::vector<CallSpec> all_calls(std::uint64_t seed);

struct Inputs {
  Tensors arguments;
  Tensors leaves;  // leaves that require a gradient: arguments, and tensors from which arguments are computed; in order
};

// Makes the arguments anew. Equal specifications give equal values.
Inputs make_inputs(const Program& program, const CallSpec& call);

}  // namespace rehearse_test::differential
