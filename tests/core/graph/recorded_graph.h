// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include <rehearse/graph/graph_module.h>

namespace rehearse::graph {

// The text, or the JSON, in a gzip file. Throws std::runtime_error that names the file if it cannot be read whole.
std::string read_gzip(const std::filesystem::path& file);
nlohmann::json read_json_gz(const std::filesystem::path& file);

// Adds recorded nodes to a module: [{name, op, target, args, kwargs, val, unbacked_bindings, ...}], as they are in
// splits.json.gz of tests/data/truth and in the output of tests/data/make_fx_splits.py. Creates the attributes and
// submodules that the nodes name, without data.
void add_recorded_nodes(GraphModule& module, const nlohmann::json& nodes);

// Returns the nodes in the form that add_recorded_nodes() reads, without metadata.
nlohmann::json record_nodes(const Graph& graph);

}  // namespace rehearse::graph
