// SPDX-License-Identifier: BSD-3-Clause
// The arguments of new_group() and new_local_group(): what is wrong with them, and the names that groups get, alike in
// all modes.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace rehearse::comm {

// Throws a ValueError for no rank, one outside a world of `world_size`, or one that is named twice.
void check_group_ranks(std::span<const int> ranks, int world_size);

// Throws a ValueError if `rank`, which calls new_local_group(), is not among the members.
void check_is_member(std::span<const int> ranks, int rank);

// Throws the ValueError of a name that an earlier group of the world has.
[[noreturn]] void refuse_taken_name(std::string_view name);

// What a group is called whose caller gives it no name: the world's new_group() number `index`, or a local one.
std::string name_of_new_group(std::size_t index);
std::string name_of_local_group(std::span<const int> ranks);

// The name that tells groups of one name apart; `earlier`: how many came before it.
std::string numbered_name(std::string_view name, std::size_t earlier);

}  // namespace rehearse::comm
