// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <c10/core/ScalarType.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include "reduce/reduce_kernels.h"

namespace rehearse::fakes {

// How to reduce tensors of one dtype with one op.
struct Reduction {
  ReduceKernel kernel;
  int components = 1;    // 2 for complex numbers, whose parts are reduced separately
  bool average = false;  // divide at the end
  bool scaled = false;   // multiply each rank's input by its factor
};

// False: this reduction does not exist.
bool find_reduction(c10::ScalarType dtype, c10d::ReduceOp::RedOpType op, Reduction& reduction);

}  // namespace rehearse::fakes
