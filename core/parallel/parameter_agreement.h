// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "parallel/model/module_state.h"

namespace rehearse::parallel {

// Blocks until all ranks of the group have called it, and throws c10::Error, on every rank, unless all have
// as many parameters, of the same dtypes, sizes and strides, in the same order. The text is that of
// c10d::verify_params_across_processes(), which compares with rank 0 too, but throws on the differing ranks
// only, and gathers a tensor from each rank on each rank. This makes one all-reduce of four numbers; only
// when ranks disagree do rank 0 and the first rank that differs from it broadcast what they have.
void verify_same_parameters(const c10::intrusive_ptr<c10d::ProcessGroup>& group, const ReducedParameters& parameters);

// The same for a caller whose ranks must agree in more. `who`: whose text it is. `marks`: for each parameter a number
// that all ranks have, and `marked` what it stands for: "its name, its unit".
struct MarkedParameters {
  const char* who;
  std::vector<std::int64_t> marks;
  const char* marked;
};
void verify_same_parameters(const c10::intrusive_ptr<c10d::ProcessGroup>& group, const ReducedParameters& parameters,
                            const MarkedParameters& how);

}  // namespace rehearse::parallel
