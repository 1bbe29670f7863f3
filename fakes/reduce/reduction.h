// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <c10/core/ScalarType.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include "reduce/reduce_kernels.h"

namespace rehearse::fakes {

// How tensors of one dtype are reduced with one op.
struct Reduction {
  ReduceKernel kernel;
  int components = 1;    // 2 for complex numbers, which are reduced part by part
  bool average = false;  // divide at the end
  bool scaled = false;   // multiply each rank's input by its factor
};

// False: there is no such reduction.
bool find_reduction(c10::ScalarType dtype, c10d::ReduceOp::RedOpType op, Reduction& reduction);

}  // namespace rehearse::fakes
