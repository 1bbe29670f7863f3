// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse_internal/comm/operation.h>

#include "nccl_api.h"

namespace rehearse::real {

// The rank that makes the call, and where the call goes.
struct RankOnDevice {
  int rank = 0;  // within the group of `ranks` ranks
  int ranks = 1;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  int sender = -1;  // for a receive from any rank: the sender
};

// Checks that NCCL can carry out the call: dtype, reduction, memory layout. Throws c10::Error. If PyTorch's back end
// (torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp) makes the same check, the text is PyTorch's.
void require_carried(const comm::Operation& call);

// Passes one rank's call to NCCL. The caller must have called ncclGroupStart() (see NcclGroup). The oldest NCCL that we
// accept has no collective for gather, scatter, all-to-all and lists of different sizes, so these calls become sends,
// receives, broadcasts and reductions. The call must not be a barrier, which NCCL does not have. Throws NcclError.
void issue(NcclApi& nccl, const RankOnDevice& where, const comm::Operation& call);

}  // namespace rehearse::real
