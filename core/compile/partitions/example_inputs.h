// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include <ATen/core/ivalue.h>

#include <rehearse/graph/graph_module.h>
#include <rehearse_internal/shapes/shape_env.h>

#include "compile/partitions/memory_classes.h"

namespace rehearse::compiler {

// What is known of inputs of a piece that lie otherwise than recorded, by the placeholder's position.
using OtherInputs = std::map<std::size_t, graph::TensorMeta>;

// A fake tensor, or a symbolic integer of `shapes`, for each placeholder, as its metadata say. Tensors are leaves.
// Those that are of one of the `memory` classes share memory; without classes none do. `others` lie as these say.
// Throws graph::GraphError for a placeholder without metadata.
std::vector<c10::IValue> example_inputs(const graph::GraphModule& module,
                                        const std::shared_ptr<shapes::ShapeEnv>& shapes,
                                        const MemoryClasses* memory = nullptr, const OtherInputs& others = {});

}  // namespace rehearse::compiler
