// SPDX-License-Identifier: BSD-3-Clause
#include "compile/aot/captured_hooks.h"

#include <algorithm>
#include <functional>
#include <unordered_set>

#include <rehearse_internal/graph/operators.h>

#include "compile/aot/find_node.h"
#include "graph/ir/hooks.h"
#include "graph/ir/targets.h"

namespace rehearse::compiler {
namespace {

using Asked = std::function<bool(const graph::Node& hook, const graph::GraphModule& module)>;

const graph::Node* find_hook(const graph::GraphModule& module, const Asked& asked) {
  return find_node(module, [&asked](const graph::Node& node, const graph::GraphModule& of) {
    return node.target() == graph::kRegisterHook && !graph::only_makes_row_major(node, of) && asked(node, of);
  });
}

bool writes(const graph::GraphModule& module) {
  for (const graph::Node& node : module.graph()) {
    const auto op = graph::find_operator(node.target());
    if (node.op() == graph::Op::CallFunction && op && op->schema().is_mutable()) return true;
  }
  return false;
}

}  // namespace

const graph::Node* first_hook(const graph::GraphModule& module) {
  return find_hook(module, [](const graph::Node&, const graph::GraphModule&) { return true; });
}

const graph::Node* hook_of_input(const graph::GraphModule& module) {
  return find_hook(module, [](const graph::Node& hook, const graph::GraphModule&) {
    return hook.args().at(1).node()->op() == graph::Op::Placeholder;
  });
}

const graph::Node* hook_of_result(const graph::GraphModule& module) {
  const graph::Node* const output = module.graph().output_node();
  if (output == nullptr) return nullptr;
  const auto results = output->input_nodes();
  return find_hook(module, [&results](const graph::Node& hook, const graph::GraphModule&) {
    return std::find(results.begin(), results.end(), hook.args().at(1).node()) != results.end();
  });
}

const graph::Node* writing_hook(const graph::GraphModule& module) {
  return find_hook(module, [](const graph::Node& hook, const graph::GraphModule& of) {
    const auto body = of.find_submodule(hook.args().at(0).node()->target());
    return body == nullptr || writes(*body);
  });
}

// When a register_hook node runs, it detaches its operands. So the joint graph contains detach operators that have the
// origin of that node. A saved tensor that such an operator returns is an operand of a hook.
std::vector<bool> saved_by_hooks(const capture::JointPartition& partition, std::size_t values,
                                 const graph::GraphModule& part) {
  std::unordered_set<const graph::Origin*> hooks;
  find_hook(part, [&](const graph::Node& hook, const graph::GraphModule&) {
    if (hook.meta().origin) hooks.insert(hook.meta().origin.get());
    return false;
  });
  if (hooks.empty()) return {};
  const auto& results = *partition.forward->graph().output_node()->args().at(0).get_if<graph::List>();
  std::vector<bool> of_hooks;
  for (std::size_t i = values; i < values + partition.saved_tensors; ++i) {
    const graph::Node* const node = results.at(i).node();
    of_hooks.push_back(node != nullptr && node->target() == "torch.ops.aten.detach.default" &&
                       hooks.contains(node->meta().origin.get()));
  }
  return of_hooks;
}

}  // namespace rehearse::compiler
