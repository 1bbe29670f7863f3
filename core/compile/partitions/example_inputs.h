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

// Metadata of a piece's inputs whose layout differs from the recorded one, by position of the placeholder.
using OtherInputs = std::map<std::size_t, graph::TensorMeta>;

// Makes a fake tensor, a symbolic integer of `shapes`, or None for each placeholder from its metadata. The tensors are
// leaves. Tensors of the same class in `memory` share memory; if `memory` is null, no two tensors do. `others` replaces
// the metadata of some placeholders. Throws graph::GraphError for a placeholder whose metadata are missing, or describe
// neither a tensor, an integer nor None.
std::vector<c10::IValue> example_inputs(const graph::GraphModule& module,
                                        const std::shared_ptr<shapes::ShapeEnv>& shapes,
                                        const MemoryClasses* memory = nullptr, const OtherInputs& others = {});

}  // namespace rehearse::compiler
