// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace rehearse::comm {

// Identifies a process group. Constant, and valid after the end of its world.
struct GroupIdentity {
  std::uint32_t id = 0;  // numbers the world's groups in the order of their creation: Event::pg_id
  std::string name;
  std::vector<int> ranks;  // ranks of the world, in the order of the group

  int size() const noexcept { return static_cast<int>(ranks.size()); }
  int global_rank(int rank) const noexcept { return ranks[static_cast<std::size_t>(rank)]; }
};

}  // namespace rehearse::comm
