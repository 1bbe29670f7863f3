// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>

#include <rehearse/graph/graph_module.h>
#include <rehearse_internal/capture/joint_graph.h>

namespace rehearse::compiler {

// Writes a joint graph as bytes. `part`: the captured graph from which it was made. The bytes contain neither origins
// nor the data of attributes, and refer to `part` for both. Throws graph::GraphError if bytes cannot hold the graph,
// because the graph has an attribute that the recording made, a submodule, an origin that no node of `part` has, or a
// view that gets a history after its node (graph::Metadata).
std::string stored_joint(const capture::JointGraph& joint, const graph::GraphModule& part);

// Reads the joint graph. `part` may differ from the graph that stored_joint() got, but only in the origins of its nodes
// and in the data of its attributes. Throws graph::GraphError, archive::DamagedBytes or std::out_of_range if the bytes
// belong to another graph.
capture::JointGraph joint_from(std::string_view bytes, const graph::GraphModule& part);

}  // namespace rehearse::compiler
