// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "parallel/model/module_state.h"

namespace rehearse::parallel {

// Blocks until all ranks of the group have called it. Throws c10::Error on every rank unless all have equally many
// parameters, with the same dtypes, sizes and strides, in the same order. The text is that of
// c10d::verify_params_across_processes(). That function throws only on the ranks that differ from rank 0, and gathers a
// tensor from every rank. This function makes one all-reduce of four numbers. Only if ranks disagree, rank 0 and the
// first rank that differs from it broadcast their descriptions.
void verify_same_parameters(const c10::intrusive_ptr<c10d::ProcessGroup>& group, const ReducedParameters& parameters);

// For a caller whose ranks must agree on more than dtypes, sizes and strides. `who`: names the caller in the text.
// `marks`: for each parameter a number that must be the same on all ranks. `marked`: says what the number was made
// from: "its name, its unit".
struct MarkedParameters {
  const char* who;
  std::vector<std::int64_t> marks;
  const char* marked;
};
void verify_same_parameters(const c10::intrusive_ptr<c10d::ProcessGroup>& group, const ReducedParameters& parameters,
                            const MarkedParameters& how);

}  // namespace rehearse::parallel
