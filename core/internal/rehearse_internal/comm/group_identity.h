// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace rehearse::comm {

// Who a process group is. Does not change, and stays true when its world is over.
struct GroupIdentity {
  std::uint32_t id = 0;  // of the world's groups, in order of their making: Event::pg_id
  std::string name;
  std::vector<int> ranks;  // of the world, by rank in the group

  int size() const noexcept { return static_cast<int>(ranks.size()); }
  int global_rank(int rank) const noexcept { return ranks[static_cast<std::size_t>(rank)]; }
};

}  // namespace rehearse::comm
