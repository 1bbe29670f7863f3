// SPDX-License-Identifier: BSD-3-Clause
#include "cli/split/pieces.h"

#include <map>
#include <utility>

#include <c10/core/ScalarType.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rehearse::cli {
namespace {

using graph::InputSpec;
using graph::Node;
using Kind = PieceValue::Kind;

Kind kind_of(InputSpec::Kind kind) {
  switch (kind) {
    case InputSpec::Kind::Parameter:
      return Kind::Parameter;
    case InputSpec::Kind::Buffer:
      return Kind::Buffer;
    case InputSpec::Kind::TensorConstant:
      return Kind::Constant;
    case InputSpec::Kind::UserInput:
    case InputSpec::Kind::ConstantInput:
      break;
  }
  return Kind::Input;
}

class Describer {
 public:
  explicit Describer(const graph::ExportedProgram& program) {
    for (const auto& input : program.inputs) inputs_.emplace(input.name, &input);
  }

  // In the graph, a parameter has its placeholder's name. Returns the parameter's own name.
  std::string name_of(const std::string& node) const {
    const auto found = inputs_.find(node);
    return found == inputs_.end() || found->second->target.empty() ? node : found->second->target;
  }

  PieceValue value(const Node& node) const {
    const bool scalar = node.meta().value && node.meta().value->scalar() != nullptr;
    const auto found = inputs_.find(node.name());
    Kind kind = scalar ? Kind::Symbol : Kind::Value;
    if (found != inputs_.end() && !scalar) kind = kind_of(found->second->kind);
    return {name_of(node.name()), kind, node.meta().value};
  }

  std::vector<PieceValue> values(const std::vector<const Node*>& nodes) const {
    std::vector<PieceValue> result;
    for (const Node* node : nodes) result.push_back(value(*node));
    return result;
  }

 private:
  std::map<std::string, const InputSpec*, std::less<>> inputs_;
};

Piece only_piece(const Describer& describer, const std::shared_ptr<graph::GraphModule>& module) {
  std::vector<const Node*> inputs, outputs;
  for (const Node& node : module->graph()) {
    if (node.op() == graph::Op::Placeholder) inputs.push_back(&node);
    if (node.op() == graph::Op::Output) outputs.assign(node.input_nodes().begin(), node.input_nodes().end());
  }
  return {"forward", 0, describer.values(inputs), describer.values(outputs), module};
}

std::string dimensions(const graph::TensorMeta& tensor) {
  std::vector<std::string> sizes;
  for (const auto& size : tensor.sizes) sizes.push_back(to_string(size));
  return fmt::format("[{}]", fmt::join(sizes, ", "));
}

std::string scalar_type(const graph::SymScalarMeta& scalar) {
  constexpr std::string_view kNames[] = {"int", "float", "bool"};
  return fmt::format("{} {}", kNames[static_cast<int>(scalar.kind)], scalar.expression.text());
}

std::string type_of_meta(const graph::ValueMeta& meta) {
  if (const auto* tensor = meta.tensor())
    return std::string(c10::getDtypeNames(tensor->dtype).first) + dimensions(*tensor);
  if (const auto* scalar = meta.scalar()) return scalar_type(*scalar);
  const auto* list = meta.list();
  if (list == nullptr) return "none";
  std::vector<std::string> items;
  for (const auto& item : *list) items.push_back(type_of_meta(item));
  return fmt::format("({})", fmt::join(items, ", "));
}

}  // namespace

std::string_view to_string(Kind kind) {
  switch (kind) {
    case Kind::Parameter:
      return "parameter";
    case Kind::Buffer:
      return "buffer";
    case Kind::Constant:
      return "constant";
    case Kind::Input:
      return "input";
    case Kind::Symbol:
      return "symbol";
    case Kind::Value:
      break;
  }
  return "value";
}

std::string type_of(const PieceValue& value) { return value.meta ? type_of_meta(*value.meta) : "unknown"; }

ModelSplit split_model(graph::ExportedProgram program, const parallel::BucketSplitterOptions& options,
                       const std::string& rules) {
  ModelSplit split{std::move(program), options, rules, {}, {}};
  const Describer describer(split.program);
  split.cut = parallel::split_by_buckets(split.program.module, options);
  for (auto& bucket : split.cut.buckets) {
    for (auto& parameter : bucket.parameters) parameter = describer.name_of(parameter);
  }
  for (const auto& part : split.cut.pieces) {
    split.pieces.push_back({part.name, static_cast<std::size_t>(part.id), describer.values(part.inputs),
                            describer.values(part.outputs), part.module});
  }
  if (!split.cut.was_split()) split.pieces.push_back(only_piece(describer, split.cut.module));
  return split;
}

}  // namespace rehearse::cli
