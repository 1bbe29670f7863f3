// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rehearse_internal/comm/operation.h>

#include "nccl_api.h"

namespace rehearse::real {

// Whose call it is, and where it goes.
struct RankOnDevice {
  int rank = 0;  // in the group, of `ranks`
  int ranks = 1;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  int sender = -1;  // of a receive, where the call leaves it open
};

// Whether NCCL can carry the call out: dtype, reduction, memory. Throws c10::Error with the texts of PyTorch's back end
// (torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp).
void require_carried(const comm::Operation& call);

// Gives one rank's call to NCCL, in a group that the caller has open: what NCCL has no collective for (gather, scatter,
// all-to-all, lists of any sizes) is made of sends, receives, broadcasts and reductions. A barrier is none of NCCL's.
// Throws NcclError.
void issue(NcclApi& nccl, const RankOnDevice& where, const comm::Operation& call);

}  // namespace rehearse::real
