// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include <rehearse/graph/graph_module.h>

namespace rehearse::graph {

// Whether the hash includes the dtypes, sizes and strides of placeholders.
enum class Placeholders { WithForms, OfAnyForm };

// A hash of what a module computes: its type; the ops, targets, arguments and order of its nodes, except the targets of
// placeholders; its submodules; and the names, dtypes, sizes and strides of attributes. Excludes the names and origins
// of nodes, other metadata, and data. An argument 5 and an expression "5" differ, as do an attribute `a.w` and an
// attribute `w` of a submodule `a`. The hash (64 bits, FNV-1a) is the same in every process. Cost: linear; a shared
// submodule counts once. Throws GraphError if submodules are nested deeper than kMaxNesting.
std::uint64_t structural_hash(const GraphModule& module, Placeholders placeholders = Placeholders::WithForms);

}  // namespace rehearse::graph
