// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <c10/core/ScalarType.h>
#include <rehearse_internal/comm/operation.h>

#include "nccl_api.h"

namespace rehearse::real {

// What NCCL is told that a tensor holds: elements of its own type, `each` of them to one of the tensor's.
struct NcclElements {
  ncclDataType_t type = ncclUint8;
  std::size_t each = 1;
};

// For data that is only moved: PyTorch's table (torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, ncclDataType), and
// complex numbers as pairs. Throws c10::TypeError for the types that PyTorch's back end refuses as well.
NcclElements elements_moved(c10::ScalarType dtype);

// Whether NCCL can reduce such data as the call says. As PyTorch has it: the sum of bools is their maximum, complex
// numbers can be added only. Throws c10::Error with PyTorch's texts.
void require_reducible(const comm::Operation& call, c10::ScalarType dtype);

// NCCL's reduction; of ReduceOp::PREMUL_SUM, whose reduction each communicator makes for itself, ncclSum.
ncclRedOp_t reduction_of(const comm::Operation& call, c10::ScalarType dtype);

}  // namespace rehearse::real
