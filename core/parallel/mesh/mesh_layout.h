// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rehearse::parallel {

// A mesh, or a slice of one, as numbers. `blocks`: all slices of this form that the whole mesh falls into (one, if it
// is the mesh itself); each has its ranks of the world, the last dimension first.
struct MeshLayout {
  std::vector<std::int64_t> sizes;
  std::vector<std::string> names;  // empty: the dimensions have none
  std::vector<std::vector<int>> blocks;

  std::int64_t ranks_of_a_block() const;
  // In the order of the blocks, and in each by the place in the dimensions that are left out. `dimensions` ascend.
  MeshLayout slice(const std::vector<std::size_t>& dimensions) const;
  // "dp", or "0" where dimensions have no names.
  std::string title_of(std::size_t dimension) const;
};

// Where a rank is in a layout.
struct MeshPlace {
  std::size_t block = 0;
  std::vector<std::int64_t> coordinate;
};
// Nothing: it is not in the mesh.
std::optional<MeshPlace> place_of(int rank, const MeshLayout& layout);

}  // namespace rehearse::parallel
