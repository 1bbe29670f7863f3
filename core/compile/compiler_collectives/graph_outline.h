// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <rehearse/graph/graph_module.h>
#include <rehearse_internal/job/compile_journal.h>

#include "compile/arguments/input_binding.h"

namespace rehearse::compiler {

// What the graphs of different ranks have in common if they do the same with the same inputs: all but sizes and
// strides, the nodes that compute sizes, and all other numbers, because the rank or the offset of its shard may be one.
// Also leaves out devices and the names of groups. Arguments of the call, and parameters and buffers of the module, are
// numbered. Names of parameters do not count, because each rank may hold another part of a model. Other tensors that
// the code finds are numbered by their first use. `inputs`: one for each placeholder.
GraphOutline outline_of(const graph::GraphModule& module, const std::vector<InputBinding>& inputs);

}  // namespace rehearse::compiler
