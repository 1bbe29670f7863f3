// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <rehearse_internal/comm/group_identity.h>
#include <rehearse_internal/comm/mismatch.h>
#include <rehearse_internal/comm/operation.h>

namespace rehearse::comm {

// `allreduce #7 on group "world"`, `send #1 to rank 3 with tag 5 on group "world"`.
std::string title_of(const Operation& call, std::uint64_t sequence, const GroupIdentity& group);

// Without peer, tag and label: `send #1 on group "world"`. `name`: as name_of() gives it.
std::string short_title(std::string_view name, std::uint64_t sequence, std::string_view group);

// The title of a send or receive without its number: each rank counts its own, so the waits of several ranks for one
// peer have different numbers. Other titles are as they were.
std::string without_own_number(const std::string& title);

// The call of `rank` (in the group) as one side of a mismatch.
Mismatch::Side side_of(const Operation& call, int rank, const GroupIdentity& group, exec::CallSite where);

}  // namespace rehearse::comm
