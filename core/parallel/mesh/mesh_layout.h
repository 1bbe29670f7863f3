// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rehearse::parallel {

// A mesh, or all its slices along the same dimensions, as numbers. `blocks`: the ranks of each slice; a whole mesh is
// one block. A block lists ranks of the world in row-major order: the index of the last dimension changes fastest.
struct MeshLayout {
  std::vector<std::int64_t> sizes;
  std::vector<std::string> names;  // empty: the dimensions have no names
  std::vector<std::vector<int>> blocks;

  std::int64_t ranks_of_a_block() const;
  // Cuts each block into slices along `dimensions`. The result has the slices of the first block first; slices of one
  // block are ordered by their position in the omitted dimensions. `dimensions` must ascend.
  MeshLayout slice(const std::vector<std::size_t>& dimensions) const;
  // "dp", or "0" if dimensions have no names.
  std::string title_of(std::size_t dimension) const;
};

struct MeshPosition {
  std::size_t block = 0;
  std::vector<std::int64_t> coordinate;
};
// Returns nullopt if the rank is not in the mesh.
std::optional<MeshPosition> position_of(int rank, const MeshLayout& layout);

}  // namespace rehearse::parallel
