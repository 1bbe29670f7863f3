// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include <rehearse/graph/graph_module.h>

namespace rehearse::graph {

// Whether the dtypes, sizes and strides of placeholders count.
enum class Placeholders { WithForms, OfAnyForm };

// A hash of what a module computes: ops, targets, arguments, order, submodules, names of attributes, and dtypes, sizes
// and strides of attributes and, as `placeholders` says, of placeholders; not of nodes' names, origins, other metadata
// or data. A size 5 and an expression "5" differ, and so do an attribute `a.w` and an attribute `w` of a submodule `a`.
// The same in every process. Equal graphs have equal hashes; unequal ones almost surely not (64 bits, FNV-1a). Cost:
// linear; a shared submodule counts once. Throws GraphError when submodules are nested deeper than kMaxNesting.
std::uint64_t structural_hash(const GraphModule& module, Placeholders placeholders = Placeholders::WithForms);

}  // namespace rehearse::graph
