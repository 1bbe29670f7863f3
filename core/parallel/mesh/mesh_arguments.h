// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "parallel/mesh/mesh_layout.h"

namespace rehearse::parallel {

// The layout that a DeviceMesh is made with. `ranks`: empty: all of a world of `world_size`, in order. Throws
// c10::ValueError for what makes no mesh.
MeshLayout layout_of(std::vector<std::int64_t> sizes, std::vector<std::string> names, std::vector<int> ranks,
                     int world_size);

// Which dimensions these names are. Throws c10::ValueError where they are not names of the layout, each once, in order.
std::vector<std::size_t> dimensions_of(const std::vector<std::string>& names, const MeshLayout& layout);

// "\"dp\", \"tp\"".
std::string quoted(const std::vector<std::string>& names);

}  // namespace rehearse::parallel
