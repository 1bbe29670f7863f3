// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/graph/exported_program.h>

#include <utility>

#include "graph/pt2/graph_importer.h"
#include "graph/pt2/schema_values.h"

namespace rehearse::graph {
namespace {

constexpr std::int64_t kSchemaMajor = 8;

Argument constant_of(const Field& field) {
  const auto [kind, value] = field.variant();
  if (kind == "as_none") return {};
  if (kind == "as_int") return value.integer();
  if (kind == "as_float") return value.number();
  if (kind == "as_bool") return value.boolean();
  if (kind == "as_string") return value.text();
  field.fail("'" + kind + "' is no constant input that is known here");
}

std::string target_of(const Field& field) {
  std::string target = field.text();
  if (target.empty()) field.fail("is empty");
  return target;
}

// `index`: a user input that is a constant has no name, and gets the name input_<index>.
InputSpec read_input(const Field& field, std::size_t index) {
  using Kind = InputSpec::Kind;
  const auto [kind, value] = field.variant();
  if (kind == "parameter") {
    return {Kind::Parameter, value["arg"]["name"].text(), target_of(value["parameter_name"]), true, {}};
  }
  if (kind == "buffer") {
    return {
        Kind::Buffer, value["arg"]["name"].text(), target_of(value["buffer_name"]), value["persistent"].boolean(), {}};
  }
  if (kind == "tensor_constant") {
    return {Kind::TensorConstant, value["arg"]["name"].text(), target_of(value["tensor_constant_name"]), true, {}};
  }
  if (kind == "constant_input") {
    return {Kind::ConstantInput, value["name"].text(), "", true, constant_of(value["value"])};
  }
  if (kind != "user_input") field.fail("'" + kind + "' is no kind of input that is known here");
  const auto [form, argument] = value["arg"].variant();
  if (form == "as_tensor") return {Kind::UserInput, argument["name"].text(), "", true, {}};
  if ((form == "as_sym_int" || form == "as_sym_float" || form == "as_sym_bool") && argument.find("as_name")) {
    return {Kind::UserInput, argument["as_name"].text(), "", true, {}};
  }
  return {Kind::ConstantInput, "input_" + std::to_string(index), "", true, constant_of(value["arg"])};
}

OutputSpec read_output(const Field& field) {
  using Kind = OutputSpec::Kind;
  const auto [kind, value] = field.variant();
  if (kind == "user_output") return {Kind::UserOutput, ""};
  if (kind == "loss_output") return {Kind::Loss, ""};
  if (kind == "buffer_mutation") return {Kind::BufferMutation, value["buffer_name"].text()};
  if (kind == "parameter_mutation") return {Kind::ParameterMutation, value["parameter_name"].text()};
  if (kind == "user_input_mutation") return {Kind::InputMutation, value["user_input_name"].text()};
  if (kind == "gradient_to_parameter") return {Kind::ParameterGradient, value["parameter_name"].text()};
  if (kind == "gradient_to_user_input") return {Kind::InputGradient, value["user_input_name"].text()};
  field.fail("'" + kind + "' is no kind of output that is known here");
}

void read_ranges(const Field& field, std::map<std::string, SymbolRange>& ranges) {
  for (const auto& [symbol, range] : field.entries()) {
    SymbolRange& known = ranges[symbol];
    if (const auto min = range.find("min_val")) known.min = min->integer();
    if (const auto max = range.find("max_val")) known.max = max->integer();
  }
}

// Parameters, buffers and tensor constants become attributes without data. Marks the placeholders of parameters
// (is_parameter).
void declare_attributes(ExportedProgram& program) {
  const std::vector<Node*> placeholders = program.module->graph().placeholders();
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    const InputSpec& input = program.inputs[i];
    Metadata& meta = placeholders[i]->meta();
    if (input.target.empty()) continue;
    if (meta.tensor() == nullptr) throw ImportError(input.name, "tensor_values", "has no entry for this input");
    TensorMeta tensor = *meta.tensor();
    tensor.is_parameter = input.kind == InputSpec::Kind::Parameter;
    if (const auto bytes = bytes_reached(tensor)) tensor.storage_nbytes = *bytes;
    meta.set_value(tensor);
    program.module->set_attribute(input.target, {tensor, {}, false});
  }
}

ExportedProgram read_program(const Field& root) {
  const std::int64_t major = root["schema_version"]["major"].integer();
  if (major != kSchemaMajor) {
    root["schema_version"]["major"].fail("is " + std::to_string(major) + "; schema " + std::to_string(kSchemaMajor) +
                                         " is read here, as PyTorch 2.11 writes it");
  }
  ExportedProgram program;
  program.module = std::make_shared<GraphModule>();
  if (const auto version = root.find("torch_version")) program.torch_version = version->text();
  const Field graph_module = root["graph_module"];
  std::vector<std::string> names;
  for (const Field& input : graph_module["signature"]["input_specs"].items()) {
    program.inputs.push_back(read_input(input, program.inputs.size()));
    names.push_back(program.inputs.back().name);
  }
  for (const Field& output : graph_module["signature"]["output_specs"].items()) {
    program.outputs.push_back(read_output(output));
  }
  read_ranges(root["range_constraints"], program.ranges);
  GraphImporter(*program.module, graph_module["graph"], std::move(names)).run();
  const std::size_t inputs = program.module->graph().placeholders().size();
  if (inputs != program.inputs.size()) {
    graph_module["signature"]["input_specs"].fail("has " + std::to_string(program.inputs.size()) +
                                                  " inputs; the graph has " + std::to_string(inputs));
  }
  const std::size_t results = graph_module["graph"]["outputs"].items().size();
  if (results != program.outputs.size()) {
    graph_module["signature"]["output_specs"].fail("has " + std::to_string(program.outputs.size()) +
                                                   " outputs; the graph has " + std::to_string(results));
  }
  declare_attributes(program);
  return program;
}

}  // namespace

ExportedProgram parse_exported_program(std::string_view text) {
  const auto document = parse_json(text, "model");
  try {
    return read_program(Field(*document, "model"));
  } catch (const ImportError&) {
    throw;
  } catch (const GraphError& error) {
    throw ImportError(error);
  }
}

}  // namespace rehearse::graph
