// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <rehearse/graph/graph_module.h>

namespace rehearse::graph {

// The module as text: one node a line, with all arguments and metadata; attributes without their data; submodules
// within. The same module gives the same text, and parse() of it a module that gives it again. A submodule that is
// shared is written where it stands first; from then on `submodule "name" shared 2` names it by its number among the
// modules of the text, in the order in which they begin, from 0.
//
//   graph_module "GraphModule" {
//     attribute "w" {"dtype": dtype(Float), "sizes": [4], "strides": [1]}
//     %x = placeholder "x" [] ; {"value": {"dtype": dtype(Float), "sizes": [sym("s0"), 4], "strides": [4, 1]}}
//     %w = get_attr "w" []
//     %mul = call_function "torch.ops.aten.mul.Tensor" [%x, %w]
//     %output = output "output" [[%mul]]
//   }
//
// A node: name, op, target, args, and where there are any, kwargs and `; metadata`. Values: none, true, 3, 2.5, nan,
// nan(0x7ff8000000000001) (a NaN with other bits), complex(1.0, 2.0), "text", %node, sym("s0*2"), ..., dtype(Float),
// device("cpu"), layout(Strided), memory_format(Contiguous), [list], {"key": value}, slice(none, 8, none).
// Throws GraphError for what is nested too deep (kMaxNesting). Without origins nodes do not say where they come from,
// which takes milliseconds to look up for those that were captured here.
enum class Origins { With, Without };
std::string to_text(const GraphModule& module, Origins origins = Origins::With);
std::string to_text(const Argument& argument);

// Throws GraphError whose field is the place, `line 3, column 14`. Whole numbers must fit into 64 bits; the keys of a
// dict, and the names of nodes, attributes and submodules, are given once.
std::shared_ptr<GraphModule> parse_graph_module(std::string_view text);

// The graph in Graphviz's DOT language: a box a node with name, target and sizes, an arrow for each use.
std::string to_dot(const Graph& graph, const std::string& name = "graph");

}  // namespace rehearse::graph
