// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/mesh/mesh_layout.h"

#include <algorithm>
#include <utility>

namespace rehearse::parallel {
namespace {

// Returns the index along `dimension` that the rank at position `index` of a block has.
std::int64_t index_at(std::size_t index, const std::vector<std::int64_t>& sizes, std::size_t dimension) {
  auto left = static_cast<std::int64_t>(index);
  for (std::size_t d = sizes.size() - 1; d > dimension; --d) left /= sizes[d];
  return left % sizes[dimension];
}

}  // namespace

std::int64_t MeshLayout::ranks_of_a_block() const { return static_cast<std::int64_t>(blocks.front().size()); }

MeshLayout MeshLayout::slice(const std::vector<std::size_t>& dimensions) const {
  MeshLayout sliced;
  const auto is_kept = [&](std::size_t d) { return std::ranges::find(dimensions, d) != dimensions.end(); };
  for (const std::size_t d : dimensions) {
    sliced.sizes.push_back(sizes[d]);
    if (!names.empty()) sliced.names.push_back(names[d]);
  }
  std::int64_t slices_of_a_block = 1;
  for (std::size_t d = 0; d < sizes.size(); ++d) slices_of_a_block *= is_kept(d) ? 1 : sizes[d];
  for (const auto& block : blocks) {
    const std::size_t first = sliced.blocks.size();
    sliced.blocks.resize(first + static_cast<std::size_t>(slices_of_a_block));
    for (std::size_t index = 0; index < block.size(); ++index) {
      std::int64_t slice = 0;
      for (std::size_t d = 0; d < sizes.size(); ++d) {
        if (!is_kept(d)) slice = slice * sizes[d] + index_at(index, sizes, d);
      }
      sliced.blocks[first + static_cast<std::size_t>(slice)].push_back(block[index]);
    }
  }
  return sliced;
}

std::string MeshLayout::title_of(std::size_t dimension) const {
  return names.empty() ? std::to_string(dimension) : names[dimension];
}

std::optional<MeshPosition> position_of(int rank, const MeshLayout& layout) {
  for (std::size_t block = 0; block < layout.blocks.size(); ++block) {
    const auto& ranks = layout.blocks[block];
    const auto found = std::ranges::find(ranks, rank);
    if (found == ranks.end()) continue;
    MeshPosition position{block, {}};
    for (std::size_t d = 0; d < layout.sizes.size(); ++d) {
      position.coordinate.push_back(index_at(static_cast<std::size_t>(found - ranks.begin()), layout.sizes, d));
    }
    return position;
  }
  return std::nullopt;
}

}  // namespace rehearse::parallel
