// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <rehearse/graph/graph_module.h>

namespace rehearse::graph {

// The module as text: one node per line, with its arguments and metadata (but not brings_history and history_from);
// attributes without their data; submodules nested. Equal modules give equal texts, and parsing a text gives a module
// with the same text. A shared submodule is written once; later, `submodule "name" shared 2` refers to it by its number
// among the modules of the text, counted from 0 in the order in which they begin.
//
//   graph_module "GraphModule" {
//     attribute "w" {"dtype": dtype(Float), "sizes": [4], "strides": [1]}
//     %x = placeholder "x" [] ; {"value": {"dtype": dtype(Float), "sizes": [sym("s0"), 4], "strides": [4, 1]}}
//     %w = get_attr "w" []
//     %mul = call_function "torch.ops.aten.mul.Tensor" [%x, %w]
//     %output = output "output" [[%mul]]
//   }
//
// A node: name, op, target, args, then kwargs and `; metadata` if there are any. Values: none, true, 3, 2.5, nan,
// nan(0x7ff8000000000001) (a NaN with other bits), complex(1.0, 2.0), "text", %node, sym("2*s0"), `...`, dtype(Float),
// device("cpu"), layout(Strided), memory_format(Contiguous), [list], {"key": value}, slice(none, 8, none). Throws
// GraphError if submodules nest deeper than kMaxNesting, or values deeper than twice that. Origins::Without leaves out
// where nodes come from, because looking that up takes milliseconds for nodes captured in this process.
enum class Origins { With, Without };
std::string to_text(const GraphModule& module, Origins origins = Origins::With);
std::string to_text(const Argument& argument);

// Throws GraphError whose field is the place, `line 3, column 14`. Integers must fit into 64 bits. Names of nodes,
// attributes and submodules, and the keys of a dict, must be unique.
std::shared_ptr<GraphModule> parse_graph_module(std::string_view text);

// The graph in Graphviz's DOT language: a shape per node with name, target, dtype and sizes, and an arrow from each
// input to the node that uses it.
std::string to_dot(const Graph& graph, const std::string& name = "graph");

}  // namespace rehearse::graph
