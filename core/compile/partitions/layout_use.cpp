// SPDX-License-Identifier: BSD-3-Clause
#include "compile/partitions/layout_use.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <ATen/core/enum_tag.h>
#include <c10/util/Exception.h>

#include <rehearse/shapes/errors.h>
#include <rehearse_internal/capture/fake_errors.h>
#include <rehearse_internal/capture/fake_tensor.h>
#include <rehearse_internal/capture/run_on_fakes.h>
#include <rehearse_internal/graph/operators.h>
#include <rehearse_internal/graph/results.h>
#include <rehearse_internal/shapes/shape_env.h>

namespace rehearse::compiler {
namespace {

using graph::Node;
using graph::Op;

// Substrings of the names of ATen operators that expose memory layout.
constexpr std::array<std::string_view, 6> kLayoutWords = {"stride",        "storage",    "resize",
                                                          "reshape_alias", "aten::set_", "is_contiguous"};
// Operators that return a view for some layouts and a copy for others.
constexpr std::array<std::string_view, 6> kViewsOrCopies = {"aten::to",      "aten::reshape", "aten::reshape_as",
                                                            "aten::flatten", "aten::ravel",   "aten::contiguous"};

bool names_layout(const std::string& name) {
  return std::ranges::any_of(kLayoutWords, [&](std::string_view part) { return name.find(part) != std::string::npos; });
}

struct LayoutUses {
  bool depends = false;
  bool writes = false;
  bool views_or_copies = false;

  void add(const graph::GraphModule& module) {
    for (const Node& node : module.graph()) add(node);
    for (const auto& [name, body] : module.submodules()) add(*body);
  }

 private:
  void add(const Node& node) {
    depends = depends || node.op() == Op::CallMethod;
    if (node.op() != Op::CallFunction || !node.target().starts_with("torch.ops.")) return;
    if (node.target().starts_with("torch.ops.higher_order.")) return;  // its bodies are submodules
    const auto op = graph::find_operator(node.target());
    if (!op) {
      depends = true;
      return;
    }
    const std::string& name = op->schema().name();
    depends =
        depends || !name.starts_with("aten::") || op->hasTag(at::Tag::nondeterministic_seeded) || names_layout(name);
    writes = writes || op->schema().is_mutable();
    views_or_copies = views_or_copies || std::ranges::find(kViewsOrCopies, name) != kViewsOrCopies.end();
  }
};

graph::ValueMeta meta_of_item(const graph::Argument& item) {
  const Node* node = item.node();
  const graph::TensorMeta* tensor = node != nullptr ? node->meta().tensor() : nullptr;
  return tensor != nullptr ? graph::ValueMeta(*tensor) : graph::ValueMeta();
}

// The metadata is older than the examples: in between, guards may have fixed some symbols to numbers. Substitutes these
// numbers in the recorded strides and offsets, for comparison.
graph::SymInt as_now_known(const graph::SymInt& number, const shapes::ShapeEnv& shapes) {
  const shapes::Expr* expression = number.is_symbolic() ? number.expression().expr() : nullptr;
  return expression != nullptr ? graph::SymInt(shapes.simplify(*expression)) : number;
}

graph::TensorMeta as_now_known(graph::TensorMeta recorded, const shapes::ShapeEnv& shapes) {
  for (graph::SymInt& stride : recorded.strides) stride = as_now_known(stride, shapes);
  recorded.storage_offset = as_now_known(recorded.storage_offset, shapes);
  return recorded;
}

// The layouts of the outputs for these examples. All other metadata stay as recorded.
std::vector<graph::ValueMeta> run_outputs(const BackendInput& input) {
  std::vector<graph::ValueMeta> outputs = recorded_outputs(*input.module);
  const auto values = capture::run_on_fakes(input.module, input.example_inputs, input.shapes);
  for (std::size_t i = 0; i < std::min(outputs.size(), values.size()); ++i) {
    const graph::TensorMeta* recorded = outputs[i].tensor();
    if (recorded == nullptr || !values[i].isTensor() || !capture::is_fake(values[i].toTensor())) continue;
    const graph::TensorMeta found = capture::meta_of(values[i].toTensor());
    graph::TensorMeta meta = *recorded;
    meta.strides = found.strides;
    meta.storage_offset = found.storage_offset;
    outputs[i] = graph::ValueMeta(std::move(meta));
  }
  return outputs;
}

}  // namespace

std::vector<graph::ValueMeta> recorded_outputs(const graph::GraphModule& module) {
  std::vector<graph::ValueMeta> outputs;
  for (const graph::Argument& result : graph::results_of(module.graph())) outputs.push_back(meta_of_item(result));
  return outputs;
}

SymbolSources symbols_of(const graph::GraphModule& module) {
  SymbolSources symbols;
  std::size_t at = 0;
  for (const Node* placeholder : module.graph().placeholders()) {
    if (placeholder->meta().value) symbols.add(at, *placeholder->meta().value);
    ++at;
  }
  for (const graph::ValueMeta& output : recorded_outputs(module)) symbols.add(at++, output);
  return symbols;
}

bool is_as_recorded(const BackendInput& input) {
  const auto placeholders = input.module->graph().placeholders();
  for (std::size_t i = 0; i < std::min(placeholders.size(), input.example_inputs.size()); ++i) {
    const graph::TensorMeta* recorded = placeholders[i]->meta().tensor();
    const c10::IValue& example = input.example_inputs[i];
    if (recorded == nullptr || !example.isTensor() || !capture::is_fake(example.toTensor())) continue;
    const graph::TensorMeta found = capture::meta_of(example.toTensor());
    if (same_layout(*recorded, found)) continue;
    if (!input.shapes || !same_layout(as_now_known(*recorded, *input.shapes), found)) return false;
  }
  return true;
}

bool same_layout(const graph::TensorMeta& left, const graph::TensorMeta& right) {
  if (left.strides.size() != right.strides.size() || !(left.storage_offset == right.storage_offset)) return false;
  for (std::size_t i = 0; i < left.strides.size(); ++i) {
    if (left.sizes[i] == graph::SymInt(1) || left.strides[i] == right.strides[i]) continue;
    return false;
  }
  return true;
}

bool depends_on_layouts(const graph::GraphModule& module) {
  LayoutUses uses;
  uses.add(module);
  return uses.depends || (uses.writes && uses.views_or_copies);
}

bool takes_layouts(const BackendInput& input) {
  if (depends_on_layouts(*input.module)) return false;
  try {
    run_outputs(input);
    return true;
  } catch (const capture::FakeError&) {
    return false;
  } catch (const shapes::ShapeError&) {
    return false;
  } catch (const c10::Error&) {  // view() of a tensor with unsuitable strides
    return false;
  }
}

std::vector<graph::ValueMeta> outputs_of(const BackendInput& input) {
  return is_as_recorded(input) ? recorded_outputs(*input.module) : run_outputs(input);
}

}  // namespace rehearse::compiler
