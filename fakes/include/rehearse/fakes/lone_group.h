// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <rehearse/job/group.h>

namespace rehearse::fakes {

// A group that holds one rank of a world of `size`, without the other ranks, like torch's back end "fake". Use it for
// work that needs a group but no other rank, such as capturing rank 1,000 of 1,024. It needs no fiber. c10d's registry
// of groups does not contain it, and it has no store.
//
// Each call is complete when it returns. allgather, _allgather_base and allgather_into_tensor_coalesced copy the input
// to each rank's place, as if all ranks passed the same input. All other calls leave their tensors as they are: a sum
// is this rank's own tensor, and gather, scatter, reduce_scatter, alltoall, allgather_coalesced and recv write no
// outputs. The future of a Work holds the output tensors (DDP's reducer reads them). Arguments are checked as in a
// world, apart from what only a fabric checks (such as the dtypes that it can reduce).
//
// Throws c10::ValueError for a rank that is not in the world.
Group lone_group(int rank, int size, const std::string& name = "world");

}  // namespace rehearse::fakes
