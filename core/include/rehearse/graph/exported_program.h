// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <rehearse/graph/graph_module.h>

namespace rehearse::graph {

// An archive or its models/<name>.json is malformed, or has something that this reader does not know. node(): the node
// with the fault, or empty. field(): the place of the fault:
// - a value in the JSON: the path from its root, `model.graph_module.graph.nodes[3].inputs[0].arg`; in a tensor's table
//   the record's name comes first, `data/weights/model_weights_config.json.config.fc.weight`;
// - a whole record of the archive: the record's name, `byteorder`;
// - the whole archive: its path, as the caller gave it;
// - a part of the graph that the JSON describes: "name", "args", "kwargs.dim" and the like, as in GraphError.
class ImportError : public GraphError {
 public:
  using GraphError::GraphError;
  explicit ImportError(const GraphError& error) : GraphError(error) {}
};

// The role of one placeholder. Specs are in the order of the placeholders.
struct InputSpec {
  enum class Kind { UserInput, Parameter, Buffer, TensorConstant, ConstantInput };
  Kind kind = Kind::UserInput;
  std::string name;        // name of the placeholder
  std::string target;      // qualified name of the parameter, buffer or constant: an attribute of the module
  bool persistent = true;  // whether the state dict includes the buffer
  Argument constant;       // ConstantInput: the value with which the program was exported
};

// The role of one item of the graph's output. Specs are in the order of the items.
struct OutputSpec {
  enum class Kind {
    UserOutput,
    Loss,
    BufferMutation,
    ParameterMutation,
    InputMutation,
    ParameterGradient,
    InputGradient
  };
  Kind kind = Kind::UserOutput;
  // The tensor to change, or the tensor of the gradient: an attribute, or the placeholder of a user input.
  std::string target;
};

struct SymbolRange {
  std::optional<std::int64_t> min;
  std::optional<std::int64_t> max;
};

// A program of torch.export. Parameters, buffers and constants are placeholders of the graph, as in Python, and
// attributes of the module. Targets are written as in fx, and symbolic sizes in Dynamo's notation.
struct ExportedProgram {
  std::shared_ptr<GraphModule> module;
  std::vector<InputSpec> inputs;
  std::vector<OutputSpec> outputs;
  std::map<std::string, SymbolRange> ranges;  // by symbol
  std::string torch_version;                  // the version that exported it
};

// Parses the text of a models/<name>.json of schema 8. Attributes have no data. Throws ImportError.
ExportedProgram parse_exported_program(std::string_view json);

// Reads a .pt2 archive, with the data of weights and constants. `model`: the name of a model in it; empty: the only
// one. Throws ImportError.
ExportedProgram load_pt2(const std::string& path, const std::string& model = "");

// Like load_pt2(), but does not read the data: attributes have only metadata. Throws ImportError.
ExportedProgram load_pt2_graph(const std::string& path, const std::string& model = "");

}  // namespace rehearse::graph
