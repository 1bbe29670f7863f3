// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "parallel/mesh/mesh_layout.h"

namespace rehearse::parallel {

// The layout of a new DeviceMesh. `ranks`: empty for all ranks of a world of `world_size`, in order. Throws
// c10::ValueError for invalid arguments.
MeshLayout layout_of(std::vector<std::int64_t> sizes, std::vector<std::string> names, std::vector<int> ranks,
                     int world_size);

// The indices of the named dimensions. Throws c10::ValueError unless these are names of the layout, each at most once,
// in order, and at least one.
std::vector<std::size_t> dimensions_of(const std::vector<std::string>& names, const MeshLayout& layout);

// "\"dp\", \"tp\"".
std::string quoted(const std::vector<std::string>& names);

}  // namespace rehearse::parallel
