// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <rehearse/capture/captured_graph.h>
#include <rehearse_internal/shapes/shape_env.h>

namespace rehearse::capture {

// A remark for each size that code read as a plain number, so that the graph holds for that number alone.
void add_shape_remarks(const shapes::ShapeEnv& shapes, std::vector<Remark>& remarks);

}  // namespace rehearse::capture
