// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <rehearse/capture/captured_graph.h>
#include <rehearse/graph/graph_module.h>

namespace rehearse::capture {

// Makes a submodule of the nodes between two marks (body_marks.h), "checkpoint_0_body" and so on, and one node that
// calls it, tag_activation_checkpoint(body, operands..., inputs=n), with an item for each result. Operands are the n
// inputs of the marks, then what nodes of the body use from outside besides. Inner bodies become submodules of outer
// ones. The marks are gone afterwards.
//
// Nodes stay in the graph, and a remark says why, if running them again would do something else, or if one node could
// not give what they give: they write to a tensor from outside, communicate, make a number that only data tells, leave
// autocast switched, return memory from outside, or make something that is used outside and is no result.
void outline_bodies(graph::GraphModule& module, std::vector<Remark>* remarks);

// The remark for that. `why`: "it writes to ...".
Remark not_outlined(const std::string& why, const exec::CallSite& where);

}  // namespace rehearse::capture
