// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "parallel/model/model_state.h"

namespace rehearse::parallel {

// Blocks until all ranks of the group have called it, and throws c10::Error, on every rank, unless all have
// as many parameters, of the same dtypes, sizes and strides, in the same order. The text is that of
// c10d::verify_params_across_processes(), which compares with rank 0 too, but throws on the differing ranks
// only, and gathers a tensor from each rank on each rank. This makes one all-reduce of four numbers; only
// when ranks disagree do rank 0 and the first rank that differs from it broadcast what they have.
// `who`: whose text it is.
void verify_same_parameters(const c10::intrusive_ptr<c10d::ProcessGroup>& group, const ReducedParameters& parameters,
                            const char* who = "DDP");

}  // namespace rehearse::parallel
