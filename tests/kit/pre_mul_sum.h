// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <torch/csrc/distributed/c10d/Types.hpp>

namespace rehearse::test {

// What c10d::makePreMulSum() makes, which is makeNCCLPreMulSum() until LibTorch 2.12.
template <class Factor>
c10d::ReduceOp pre_mul_sum(const Factor& factor) {
  c10d::ReduceOp made;
  made.op_ = c10d::ReduceOp::PREMUL_SUM;
  made.supplement_ = c10::make_intrusive<c10d::NCCLPreMulSumSupplement>(factor);
  return made;
}

}  // namespace rehearse::test
