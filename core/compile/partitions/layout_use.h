// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <rehearse/compile/backend.h>
#include <rehearse/graph/graph_module.h>

#include "compile/partitions/layout_fit.h"

namespace rehearse::compiler {

// What the graph's metadata say of its outputs: an empty ValueMeta where they tell of no tensor.
std::vector<graph::ValueMeta> recorded_outputs(const graph::GraphModule& module);

// Where a call of the graph tells the values of symbols: its placeholders, then its outputs, are values #0, #1, ...
SymbolSources symbols_of(const graph::GraphModule& module);

// Whether the examples lie as the graph's metadata say.
bool is_as_recorded(const BackendInput& input);

// Whether two tensors lie in memory alike: their strides, but for dimensions of size 1, and where they begin.
bool same_layout(const graph::TensorMeta& left, const graph::TensorMeta& right);

// Whether what the graph computes, and which of its values share memory, depends on how its inputs lie in memory: it
// names strides or offsets, draws random numbers in the order of memory, or calls what LibTorch does not know.
bool depends_on_layouts(const graph::GraphModule& module);

// Whether the graph gives the same values for these examples, which lie otherwise than it was captured for.
bool takes_layouts(const BackendInput& input);

}  // namespace rehearse::compiler
