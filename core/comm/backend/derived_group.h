// SPDX-License-Identifier: BSD-3-Clause
// Groups made from a group, by split() and shrink(): what all back ends of ours have in common.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse::comm {

// The group's name where the caller gives none: "world:split:[0, 2]".
std::string derived_name(const std::string& group, std::string_view how, const std::vector<int>& ranks);

// Throws a ValueError of `call` for no rank, a rank outside a group of `size`, or one that is named twice.
void check_members(const char* call, const std::vector<int>& ranks, int size);

// The ranks of a group of `size` that are left without those, for its member `self`. Throws a ValueError where there is
// something wrong with them, or `self` is one of them.
std::vector<int> ranks_that_stay(const std::vector<std::int64_t>& excluded, int self, int size);

// Whether the flags of shrink() ask to abort. They are 0 or kShrinkAbort; throws a ValueError for others.
bool is_abort(int flags);

// Checks the argument of extend_timeout_once(). Throws a ValueError for durations below 0.
void check_extension(std::chrono::milliseconds duration);

}  // namespace rehearse::comm
