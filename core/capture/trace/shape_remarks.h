// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <rehearse/capture/captured_graph.h>
#include <rehearse_internal/shapes/shape_env.h>

namespace rehearse::capture {

// Adds a remark for each size that the code read as a plain number. The graph holds only for that number.
void add_shape_remarks(const shapes::ShapeEnv& shapes, std::vector<Remark>& remarks);

}  // namespace rehearse::capture
