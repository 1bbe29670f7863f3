// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <rehearse/compile/backend.h>
#include <rehearse/graph/graph_module.h>

#include "compile/partitions/layout_fit.h"

namespace rehearse::compiler {

// The metadata of the graph's outputs; an empty ValueMeta for an output that is no tensor or has no metadata.
std::vector<graph::ValueMeta> recorded_outputs(const graph::GraphModule& module);

// Finds the placeholders and outputs that give the values of the graph's symbols. Numbers the placeholders first, then
// the outputs.
SymbolSources symbols_of(const graph::GraphModule& module);

// True if the examples have the layouts in the graph's metadata.
bool is_as_recorded(const BackendInput& input);

// True if two tensors have the same offset and, except for dimensions of size 1, the same strides.
bool same_layout(const graph::TensorMeta& left, const graph::TensorMeta& right);

// True if the layouts of the inputs may affect what the graph computes. That is so if the graph reads or sets strides,
// offsets or storages, draws random numbers in memory order, or calls a method or an operator that is not ATen's. It is
// also so if the graph writes to a tensor and has an operator that returns a view for some layouts and a copy for
// others.
bool depends_on_layouts(const graph::GraphModule& module);

// True if the graph accepts the layouts of these examples, and computes the same results as with the recorded layouts.
bool takes_layouts(const BackendInput& input);

}  // namespace rehearse::compiler
