// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>

#include <rehearse/graph/graph_module.h>
#include <rehearse_internal/capture/joint_graph.h>

namespace rehearse::compiler {

// Writes a joint graph as text. `part` is the captured graph that it was made of: its nodes tell where those of the
// joint graph come from, and the joint graph uses its attributes. Throws graph::GraphError where text cannot hold the
// graph: it has an attribute that the recording made, a submodule, or history that comes to a view.
std::string stored_joint(const capture::JointGraph& joint, const graph::GraphModule& part);

// The joint graph again, of a part that is the same but for where its nodes come from and what its attributes hold.
// Throws graph::GraphError or std::bad_variant_access for a text of another part.
capture::JointGraph joint_from(std::string_view text, const graph::GraphModule& part);

}  // namespace rehearse::compiler
