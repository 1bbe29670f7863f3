// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <rehearse/graph/graph_module.h>

namespace rehearse::compiler {

// "it was torch.ops.aten.add.Tensor at model.cpp:12, and is torch.ops.aten.mul.Tensor at model.cpp:14 now": the first
// nodes in which they differ. Empty: they have the same nodes.
std::string difference_of(const graph::GraphModule& before, const graph::GraphModule& now);

}  // namespace rehearse::compiler
