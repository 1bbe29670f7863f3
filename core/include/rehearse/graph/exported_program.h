// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <rehearse/graph/interpreter.h>

namespace rehearse::graph {

// An archive or its model.json is not as it must be, or holds something that is not known here. node(): the node, where
// it is in one, else empty. field(), by where the fault is:
// - in the JSON: the path from its root on, `model.graph_module.graph.nodes[3].inputs[0].arg`; in a tensor's table the
//   record's name stands first, `data/weights/model_weights_config.json.config.fc.weight`;
// - in a record of the archive as a whole: the record's name, `byteorder`;
// - in the archive as a whole: its path, as it was given;
// - in what the JSON says about the graph taken together: "name", "args", "kwargs.dim" and the like, as in GraphError.
class ImportError : public GraphError {
 public:
  using GraphError::GraphError;
  explicit ImportError(const GraphError& error) : GraphError(error) {}
};

// What one placeholder is, in order.
struct InputSpec {
  enum class Kind { UserInput, Parameter, Buffer, TensorConstant, ConstantInput };
  Kind kind = Kind::UserInput;
  std::string name;        // of the placeholder
  std::string target;      // parameter, buffer, constant: its qualified name, an attribute of the module
  bool persistent = true;  // a buffer that is part of the state
  Argument constant;       // ConstantInput: the value with which the program was exported
};

// What one item of the graph's output is, in order.
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
  // What is to be changed or what the gradient belongs to: an attribute, or the placeholder of a user input.
  std::string target;
};

struct SymbolRange {
  std::optional<std::int64_t> min;
  std::optional<std::int64_t> max;
};

// A program of torch.export. Parameters, buffers and constants are placeholders of the graph, as there, and attributes
// of the module; the targets are fx's, sizes are text in the notation of Dynamo.
struct ExportedProgram {
  std::shared_ptr<GraphModule> module;
  std::vector<InputSpec> inputs;
  std::vector<OutputSpec> outputs;
  std::map<std::string, SymbolRange> ranges;  // of the symbols
  std::string torch_version;                  // that exported it
};

// From the text of a models/<name>.json, schema 8: attributes have no data. Throws ImportError.
ExportedProgram parse_exported_program(std::string_view json);

// From a .pt2 archive, with the data of weights and constants. `model`: which of its models; empty: the only one.
// Throws ImportError.
ExportedProgram load_pt2(const std::string& path, const std::string& model = "");

// The same without the data, which is not read: attributes have metadata alone. Throws ImportError.
ExportedProgram load_pt2_graph(const std::string& path, const std::string& model = "");

// Runs an exported program. Buffers that it changes stay changed in its attributes.
class ProgramRunner {
 public:
  // Throws GraphError for what the interpreter does not know, and for attributes without data.
  explicit ProgramRunner(ExportedProgram program);

  // `inputs`: the user's inputs, flat, constants among them. Returns the user's outputs, flat. Throws GraphError that
  // names the input when number, dtype, sizes, symbols or constants do not fit.
  std::vector<c10::IValue> run(const std::vector<c10::IValue>& inputs) const;

  const ExportedProgram& program() const noexcept { return program_; }

 private:
  ExportedProgram program_;
  Interpreter interpreter_;
};

}  // namespace rehearse::graph
