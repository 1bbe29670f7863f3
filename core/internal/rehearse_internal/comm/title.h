// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

#include <rehearse_internal/comm/group_identity.h>
#include <rehearse_internal/comm/mismatch.h>
#include <rehearse_internal/comm/operation.h>

namespace rehearse::comm {

// `allreduce #7 on group "world"`, `send #1 to rank 3 with tag 5 on group "world"`.
std::string title_of(const Operation& call, std::uint64_t sequence, const GroupIdentity& group);

// The call of `rank` (in the group) as one side of a mismatch.
Mismatch::Side side_of(const Operation& call, int rank, const GroupIdentity& group, exec::CallSite where);

}  // namespace rehearse::comm
