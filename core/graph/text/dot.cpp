// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/graph/text.h>

namespace rehearse::graph {
namespace {

std::string dot_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

// Graphviz must see `\n` in a label as a line break, so this function quotes the parts one by one.
std::string label(const Node& node) {
  std::string text = dot_string(node.name());
  text.pop_back();
  std::string target = dot_string(node.target());
  text += "\\n" + target.substr(1, target.size() - 2);
  if (const TensorMeta* tensor = node.meta().tensor()) {
    text += std::string("\\n") + c10::toString(tensor->dtype) + "[";
    for (std::size_t i = 0; i < tensor->sizes.size(); ++i) text += (i == 0 ? "" : ", ") + to_string(tensor->sizes[i]);
    text += ']';
  }
  return text + '"';
}

const char* shape(Op op) {
  if (op == Op::Placeholder || op == Op::Output) return "ellipse";
  return op == Op::GetAttr ? "note" : op == Op::CallModule ? "component" : "box";
}

}  // namespace

std::string to_dot(const Graph& graph, const std::string& name) {
  std::string text = "digraph " + dot_string(name) + " {\n";
  for (const Node& node : graph) {
    text += "  " + dot_string(node.name()) + " [shape=" + shape(node.op()) + ", label=" + label(node) + "];\n";
  }
  for (const Node& node : graph) {
    for (const Node* input : node.input_nodes())
      text += "  " + dot_string(input->name()) + " -> " + dot_string(node.name()) + ";\n";
  }
  return text + "}\n";
}

}  // namespace rehearse::graph
