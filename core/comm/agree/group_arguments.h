// SPDX-License-Identifier: BSD-3-Clause
// Checks the arguments of new_group() and new_local_group(), and makes default names. All modes use this code.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace rehearse::comm {

// Throws a ValueError if `ranks` is empty, has a rank outside of the world, or has a rank twice.
void check_group_ranks(std::span<const int> ranks, int world_size);

// Throws a ValueError if `rank`, which calls new_local_group(), is not among the members.
void check_is_member(std::span<const int> ranks, int rank);

// Throws the ValueError for a name that another group of the world already has.
[[noreturn]] void refuse_taken_name(std::string_view name);

// The default names of groups: for new_group() number `index` of the world, and for a local group.
std::string name_of_new_group(std::size_t index);
std::string name_of_local_group(std::span<const int> ranks);

// A name that distinguishes groups with equal names and different members: "pair of [0, 1]".
std::string name_with_ranks(std::string_view name, std::span<const int> ranks);

// A name that distinguishes groups with equal names. `earlier`: how many groups had the name before.
std::string numbered_name(std::string_view name, std::size_t earlier);

}  // namespace rehearse::comm
