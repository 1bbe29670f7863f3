// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <c10/core/ScalarType.h>
#include <rehearse_internal/comm/operation.h>

#include "nccl_api.h"

namespace rehearse::real {

// How NCCL sees a tensor: as elements of the type `type`, `each` of them for one element of the tensor.
struct NcclElements {
  ncclDataType_t type = ncclUint8;
  std::size_t each = 1;
};

// Returns NCCL's elements for a tensor of this dtype. NCCL can move every tensor as these elements; require_reducible()
// checks whether it can also reduce them. Follows PyTorch's table (torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp,
// ncclDataType); complex numbers are pairs. Throws c10::TypeError for the types that PyTorch's back end also refuses.
NcclElements elements_moved(c10::ScalarType dtype);

// Checks that NCCL can reduce this dtype with the call's reduction. As in PyTorch, the sum of bools is their maximum,
// and complex numbers can only be added. Throws c10::Error with PyTorch's texts.
void require_reducible(const comm::Operation& call, c10::ScalarType dtype);

// Returns NCCL's reduction for the call. For ReduceOp::PREMUL_SUM it returns ncclSum, because class Reduction
// makes that reduction anew for each call. Throws c10::Error if NCCL has no such reduction.
ncclRedOp_t reduction_of(const comm::Operation& call, c10::ScalarType dtype);

// The reduction of a call for one communicator. For ReduceOp::PREMUL_SUM, which multiplies by the call's factor before
// adding, the constructor makes NCCL's reduction and the destructor destroys it. The destructor may run while the calls
// that use the reduction are still under way.
class Reduction {
 public:
  // Throws NcclError, and what reduction_of() and require_factor() throw.
  Reduction(NcclApi& nccl, const comm::Operation& call, c10::ScalarType dtype, ncclComm_t comm);
  Reduction(const Reduction&) = delete;
  Reduction& operator=(const Reduction&) = delete;
  ~Reduction();

  ncclRedOp_t op() const noexcept { return op_; }

 private:
  NcclApi& nccl_;
  ncclComm_t comm_;
  ncclRedOp_t op_;
  bool own_ = false;
};

// Throws c10::ValueError if a PREMUL_SUM has no factor that NCCL accepts.
void require_factor(const comm::Operation& call);

}  // namespace rehearse::real
