// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <rehearse/job/group.h>

namespace rehearse::fakes {

// The group of one rank alone in a world of `size`, as torch's back end "fake": for what needs a group but not its
// other ranks, such as capturing rank 1,000 of 1,024. No fiber is needed. It is not in c10d's registry of groups, and
// its store is empty.
//
// Each call is complete when it returns. Tensors are as if all ranks gave what this one gives: allgather,
// _allgather_base and allgather_into_tensor_coalesced copy the input to each rank's place. All other calls leave their
// tensors as they are: a sum is this rank's own tensor, and outputs of gather, scatter, reduce_scatter, alltoall,
// allgather_coalesced and recv are not written. A Work is complete, and its future holds the output tensors (DDP's
// reducer reads them). Arguments are checked as in a world.
//
// Throws c10::ValueError for a rank that is not in the world.
Group lone_group(int rank, int size, const std::string& name = "world");

}  // namespace rehearse::fakes
