// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>

#include <rehearse/graph/graph_module.h>
#include <rehearse_internal/capture/joint_graph.h>

namespace rehearse::compiler {

// A joint graph as text. `part`: the graph that was captured, whose nodes tell where those of the joint graph come
// from, and whose attributes it uses. Throws graph::GraphError for one that has something else: an attribute that the
// recording made, a submodule, history that comes to a view.
std::string stored_joint(const capture::JointGraph& joint, const graph::GraphModule& part);

// The joint graph again, of a part that is the same but for where its nodes come from and what its attributes hold.
// Throws graph::GraphError or std::bad_variant_access for a text of another part.
capture::JointGraph joint_from(std::string_view text, const graph::GraphModule& part);

}  // namespace rehearse::compiler
