// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse_internal/comm/operation.h>

#include "nccl_api.h"

namespace rehearse::real {

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
