// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/splitter/parameter_uses.h"

#include <unordered_set>
#include <utility>

#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>

namespace rehearse::parallel {
namespace {

using graph::Node;
using graph::Op;
using graph::TensorMeta;

// The bytes of the storage if known (a view counts its whole storage); otherwise the bytes of a dense tensor with these
// sizes.
std::int64_t bytes_of(const TensorMeta& meta, const std::string& name) {
  if (meta.storage_nbytes && !meta.storage_nbytes->is_symbolic()) {
    const auto stored = meta.storage_nbytes->number();
    TORCH_CHECK_VALUE(stored >= 0, "parameter ", name, " has a storage of ", stored, " bytes; there must be 0 or more");
    return stored;
  }
  auto bytes = static_cast<std::int64_t>(c10::elementSize(meta.dtype));
  for (const auto& size : meta.sizes) {
    TORCH_CHECK_VALUE(!size.is_symbolic(), "parameter ", name, " has the symbolic size ", graph::to_string(size),
                      "; the size of a parameter must be a number for its bucket");
    TORCH_CHECK_VALUE(size.number() >= 0 && !__builtin_mul_overflow(bytes, size.number(), &bytes), "parameter ", name,
                      " has a size of ", size.number(), "; its bytes must fit into 63 bits");
  }
  return bytes;
}

bool is_trained(const TensorMeta* meta) { return meta && meta->is_parameter && meta->requires_grad; }
bool is_trained(const graph::Attribute& attribute) { return is_trained(&attribute.meta) && !attribute.ddp_ignored; }

// Tied parameters are one tensor with several names.
const void* identity_of(const graph::Attribute& attribute) {
  if (attribute.tensor.defined()) return attribute.tensor.unsafeGetTensorImpl();
  return &attribute;
}

// In Python, the target of every node is a name, except for a function call, whose target is the function.
bool has_name_as_target(const Node& node) { return node.op() != Op::CallFunction; }

// The node of the object on which `node` calls a method. Null if that node's target is no name in Python, because
// Python's splitter then overlooks the object.
const Node* named_self(const Node& node) {
  const Node* self = node.op() == Op::CallMethod && !node.args().empty() ? node.args()[0].node() : nullptr;
  return self && has_name_as_target(*self) ? self : nullptr;
}

}  // namespace

ParameterUses::ParameterUses(const graph::GraphModule& module, const CountingRules& rules)
    : module_(module), rules_(rules) {
  if (rules_.each_use) return;
  for (const Node& node : module.graph()) {
    for (const Use& use : uses_by(node)) first_use_.try_emplace(use.parameter, &node);
  }
}

std::vector<CountedParameter> ParameterUses::of(const Node& node) {
  std::vector<CountedParameter> counted;
  for (Use& use : uses_by(node)) {
    if (!counts(use, node)) continue;
    const std::int64_t bytes = bytes_of(*use.meta, use.name);
    counted.push_back({std::move(use.name), bytes});
  }
  return counted;
}

std::vector<std::string> ParameterUses::uncounted(const graph::GraphModule& module, const CountingRules& rules) {
  ParameterUses by_rules(module, rules), all(module, CountingRules::ddp());
  std::unordered_set<Identity> known;
  for (const Node* node = module.graph().last(); node; node = node->prev()) {
    for (const Use& use : by_rules.uses_by(*node)) known.insert(use.parameter);
  }
  std::vector<std::string> names;
  for (const Node& node : module.graph()) {
    for (Use& use : all.uses_by(node)) {
      if (known.insert(use.parameter).second) names.push_back(std::move(use.name));
    }
  }
  return names;
}

// Returns whether this use of a parameter counts. If a parameter counts only once, it counts at its first use. The
// function then removes it from first_use_, because the same node may use the parameter twice.
bool ParameterUses::counts(const Use& use, const Node& node) {
  if (rules_.each_use) return true;
  const auto first = first_use_.find(use.parameter);
  if (first == first_use_.end() || first->second != &node) return false;
  first_use_.erase(first);
  return true;
}

// In PyTorch, the node that fetches an attribute uses it. Under `each_use = false`, the node that takes the fetched
// value uses the attribute, because the attribute's gradient is completed there.
ParameterUses::Uses ParameterUses::uses_by(const Node& node) {
  Uses uses;
  if (node.op() == Op::Placeholder || node.op() == Op::Output) return uses;
  if (node.op() == Op::GetAttr) {
    if (rules_.each_use) add_attribute(node, uses);
    return uses;
  }
  if (node.op() == Op::CallModule) add_module(node.target(), node.target(), node, uses);
  if (const Node* self = named_self(node)) add_module(self->target(), node.target(), node, uses);
  for (const Node* input : counted_inputs(node)) add_placeholder(*input, uses);
  if (rules_.each_use) return uses;
  for (const Node* input : node.input_nodes()) {
    if (input->op() == Op::GetAttr) add_attribute(*input, uses);
  }
  return uses;
}

// The inputs of `node` that count if they are placeholders of parameters.
std::vector<const Node*> ParameterUses::counted_inputs(const Node& node) const {
  if (rules_.nested_arguments) return {node.input_nodes().begin(), node.input_nodes().end()};
  std::vector<const Node*> inputs;
  if (node.op() != Op::CallFunction && !named_self(node)) return inputs;
  for (const auto& argument : node.args()) {
    if (const Node* input = argument.node()) inputs.push_back(input);
  }
  return inputs;
}

void ParameterUses::add_placeholder(const Node& input, Uses& uses) const {
  if (input.op() != Op::Placeholder) return;
  const TensorMeta* meta = input.meta().tensor();
  if (!is_trained(meta) || (input.meta().ddp_ignored && !rules_.ignored_if_inlined)) return;
  uses.push_back({&input, input.target(), meta});
}

void ParameterUses::add_attribute(const Node& fetch, Uses& uses) const {
  const graph::Attribute* attribute = module_.find_attribute(fetch.target());
  if (!attribute || !is_trained(*attribute)) return;
  uses.push_back({identity_of(*attribute), fetch.target(), &attribute->meta});
}

// If a graph calls a module several times, the module counts only at the call for which uses_by() is called first. Adds
// parameters in the order of torch.nn.Module.named_parameters(): the module's own parameters, then those of its
// submodules, each module and each parameter once.
void ParameterUses::add_module(const std::string& target, const std::string& prefix, const Node& node, Uses& uses) {
  const auto called = module_.find_submodule(target);
  if (!called || counted_at_.try_emplace(called.get(), &node).first->second != &node) return;
  std::unordered_set<const graph::GraphModule*> modules;
  std::unordered_set<Identity> parameters;
  std::vector<std::pair<const graph::GraphModule*, std::string>> waiting = {{called.get(), prefix + "_"}};
  while (!waiting.empty()) {
    const auto [module, path] = std::move(waiting.back());
    waiting.pop_back();
    if (!modules.insert(module).second) continue;
    for (const auto& [name, attribute] : module->attributes()) {
      if (!is_trained(attribute) || !parameters.insert(identity_of(attribute)).second) continue;
      uses.push_back({identity_of(attribute), path + name, &attribute.meta});
    }
    const auto& below = module->submodules();
    for (auto sub = below.rbegin(); sub != below.rend(); ++sub)
      waiting.emplace_back(sub->second.get(), path + sub->first + ".");
  }
}

}  // namespace rehearse::parallel
