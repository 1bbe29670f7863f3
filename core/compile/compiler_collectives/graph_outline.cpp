// SPDX-License-Identifier: BSD-3-Clause
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse/graph/text.h>
#include <rehearse_internal/comm/op_table.h>
#include <rehearse_internal/graph/operators.h>
#include <rehearse_internal/hash/fnv1a.h>

#include "compile/compiler_collectives/agreement.h"

namespace rehearse::compiler {
namespace {

using graph::Argument;
using graph::Node;
using graph::Op;

bool is_symbolic_number(const Node& node) {
  return node.meta().value != nullptr && node.meta().value->scalar() != nullptr;
}

// "broadcast" for torch.ops.c10d.broadcast_.default.
std::string_view operation_in(std::string_view target) {
  target.remove_prefix(target.find('.', target.find("c10d")) + 1);
  target = target.substr(0, target.find('.'));
  return target.substr(0, target.find_last_not_of('_') + 1);
}

class OutlineWriter {
 public:
  explicit OutlineWriter(const std::vector<InputBinding>& inputs) : inputs_(inputs) {}

  // The bodies of higher-order operators follow the graph that names them. Each module is written once.
  void add(const graph::GraphModule& module) {
    const bool is_whole = seen_.empty();
    if (!seen_.insert(&module).second) return;
    std::size_t placeholders = 0;
    for (const Node& node : module.graph()) {
      const std::size_t input = node.op() == Op::Placeholder ? placeholders++ : 0;
      if (is_symbolic_number(node)) continue;
      if (node.op() != Op::Placeholder) {
        add(node, module);
        continue;
      }
      const graph::TensorMeta* const tensor = node.meta().tensor();
      names_[&node] = fmt::format("{} {}", tensor != nullptr ? c10::toString(tensor->dtype) : "undefined",
                                  is_whole ? name_of(inputs_.at(input)) : fmt::format("input {}", input));
    }
    for (const auto& [name, submodule] : module.submodules()) add(*submodule);
  }

  GraphOutline finish() {
    std::string text;
    for (const auto& node : outline_.nodes) text += node.target + node.arguments + "\n";
    outline_.hash = fnv1a(text);
    return std::move(outline_);
  }

 private:
  std::string name_of(const InputBinding& input) {
    if (input.kind == InputBinding::Kind::Value) return fmt::format("value {}", input.dimension);
    if (input.kind != InputBinding::Kind::Captured) return fmt::format("argument {}", input.index);
    return input.index > 0 ? fmt::format("parameter {}", input.index - 1) : fmt::format("tensor {}", found_++);
  }

  void add(const Node& node, const graph::GraphModule& module) {
    now_ = &node;
    names_[&node] = fmt::format("%{}", outline_.nodes.size());
    outline_.has_root |= communicates() && comm::has_root(operation_in(node.target()));
    const bool is_output = node.op() == Op::Output;
    GraphOutline::Node& line = outline_.nodes.emplace_back();
    line.target = is_output ? "the results" : node.target();
    line.arguments = text_of(is_output ? node.args().front() : Argument(node.args()));
    if (!node.kwargs().empty()) line.arguments += text_of(Argument(node.kwargs()));
    const auto* const attribute = node.op() == Op::GetAttr ? module.find_attribute(node.target()) : nullptr;
    if (attribute != nullptr) line.arguments += c10::toString(attribute->meta.dtype);
    if (node.meta().origin != nullptr) line.where = node.meta().origin->site;
  }

  bool communicates() const { return now_->target().find("c10d") != std::string::npos; }

  // True for an item of an operator that returns several values, such as max(): each is another value. An item of a
  // list (chunk()) is a number, which may be the rank's.
  bool is_item_of_several() const {
    const Node* const list = now_->target() == "_operator.getitem" ? now_->args().at(0).node() : nullptr;
    const auto op =
        list != nullptr && list->op() == Op::CallFunction ? graph::find_operator(list->target()) : std::nullopt;
    return op && op->schema().returns().size() > 1;
  }

  bool is_number(const Argument& argument) const {
    if (argument.is<std::int64_t>() && is_item_of_several()) return false;
    const Node* const node = argument.node();
    return (node != nullptr && is_symbolic_number(*node)) || argument.is<std::int64_t>() || argument.is<double>() ||
           argument.is<std::complex<double>>() || argument.is<graph::SymExpr>() || argument.is<c10::Device>() ||
           (communicates() && argument.is<std::string>());
  }

  std::string text_of(const Argument& argument) const {
    if (is_number(argument)) return "number";
    if (const Node* const node = argument.node()) return names_.at(node);
    std::vector<std::string> texts;
    if (const auto* const dict = argument.get_if<graph::Dict>()) {
      for (const auto& [key, item] : *dict) texts.push_back(key + "=" + text_of(item));
    } else if (const auto* const slice = argument.get_if<graph::Slice>()) {
      return "slice" + text_of(Argument(slice->bounds()));
    } else if (const auto* const list = argument.get_if<graph::List>()) {
      for (const Argument& item : *list) {
        // A segment also returns the numbers that later segments may need.
        if (now_->op() != Op::Output || !is_number(item)) texts.push_back(text_of(item));
      }
    } else {
      return graph::to_text(argument);
    }
    return fmt::format("({})", fmt::join(texts, ", "));
  }

  const std::vector<InputBinding>& inputs_;
  std::set<const graph::GraphModule*> seen_;  // used for membership tests only
  std::unordered_map<const Node*, std::string> names_;
  const Node* now_ = nullptr;  // its arguments are being written
  std::size_t found_ = 0;      // tensors that neither the call nor its module has
  GraphOutline outline_;
};

}  // namespace

GraphOutline outline_of(const graph::GraphModule& module, const std::vector<InputBinding>& inputs) {
  OutlineWriter writer(inputs);
  writer.add(module);
  return writer.finish();
}

}  // namespace rehearse::compiler
