// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <rehearse/capture/captured_graph.h>
#include <rehearse/graph/graph_module.h>

namespace rehearse::capture {

// Moves the nodes between each pair of marks (body_marks.h) into a submodule, "checkpoint_0_body" and so on. The marks
// name the operation. A node such as tag_activation_checkpoint(body, operands..., inputs=n) calls the submodule and
// returns a list of the results. The operands are the n inputs of the begin mark, then the other values from outside
// that the body uses. Inner bodies become submodules of outer ones. Removes the marks.
//
// Some nodes cannot become a body, because running them again could have another effect, or because one node could not
// return their results. For example, they write to a tensor from outside, communicate, create a number that depends on
// data, leave autocast switched, return memory from outside, or create a value that is used outside and is no result.
// Such nodes stay in the graph, and a remark says why. `remarks` may be null.
void outline_bodies(graph::GraphModule& module, std::vector<Remark>* remarks);

// The remark for nodes that cannot become a body. `operation`: the name in the marks. `why`: "it writes to ...".
Remark not_outlined(const std::string& operation, const std::string& why, const exec::CallSite& where);

}  // namespace rehearse::capture
