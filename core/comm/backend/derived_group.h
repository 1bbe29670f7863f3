// SPDX-License-Identifier: BSD-3-Clause
// Helpers of all back ends, for groups that split() and shrink() make from a group, and for extend_timeout_once().
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse::comm {

// The default name of a group that `how` ("split" or "shrink") makes: "world:split:[0, 2]".
std::string derived_name(const std::string& group, std::string_view how, const std::vector<int>& ranks);

// Throws a ValueError that names `call` if `ranks` is empty, has a rank outside of a group of `size`, or has a rank
// twice.
void check_members(const char* call, const std::vector<int>& ranks, int size);

// The ranks of a group of `size` without `excluded`. `self`: the calling rank, which must stay. Throws a ValueError if
// check_members() refuses `excluded`, or if it contains `self`.
std::vector<int> ranks_that_stay(const std::vector<std::int64_t>& excluded, int self, int size);

// Whether the flags of shrink() ask to abort. They may be 0 or kShrinkAbort; throws a ValueError for any other value.
bool is_abort(int flags);

// Throws a ValueError if extend_timeout_once() gets a negative duration.
void check_extension(std::chrono::milliseconds duration);

}  // namespace rehearse::comm
