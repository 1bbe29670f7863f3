// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/splitter/parameter_uses.h"

#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>

namespace rehearse::parallel {
namespace {

using graph::Node;
using graph::Op;
using graph::TensorMeta;

// Bytes of the storage where they are known (a view counts what it views); else of a dense tensor of that size.
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

// Python sees a name in the target of every node but a function's, whose target is the function.
bool has_name_as_target(const Node& node) { return node.op() != Op::CallFunction; }

// What a method is called on, where Python sees a name in its target.
const Node* named_self(const Node& node) {
  const Node* self = node.op() == Op::CallMethod && !node.args().empty() ? node.args()[0].node() : nullptr;
  return self && has_name_as_target(*self) ? self : nullptr;
}

}  // namespace

ParameterUses::ParameterUses(const graph::GraphModule& module, const CountingRules& rules)
    : module_(module), rules_(rules) {
  if (rules_.each_use) return;
  for (const Node& node : module.graph()) {
    for (const Node* input : counted_inputs(node)) first_use_.try_emplace(input, &node);
  }
}

std::vector<CountedParameter> ParameterUses::of(const Node& node) {
  std::vector<CountedParameter> counted;
  switch (node.op()) {
    case Op::CallFunction:
      add_arguments(node, counted);
      break;
    case Op::CallMethod:
      if (const Node* self = named_self(node)) add_module(self->target(), node.target(), counted);
      add_arguments(node, counted);
      break;
    case Op::CallModule:
      add_module(node.target(), node.target(), counted);
      add_arguments(node, counted);
      break;
    case Op::GetAttr:
      add_attribute(node, counted);
      break;
    case Op::Placeholder:
    case Op::Output:
      break;
  }
  return counted;
}

// The inputs among which placeholders of parameters count.
std::vector<const Node*> ParameterUses::counted_inputs(const Node& node) const {
  std::vector<const Node*> inputs;
  if (node.op() != Op::CallFunction && node.op() != Op::CallMethod && node.op() != Op::CallModule) return inputs;
  if (rules_.nested_arguments) {
    for (const Node* input : node.input_nodes()) inputs.push_back(input);
  } else if (node.op() == Op::CallFunction || named_self(node)) {
    for (const auto& argument : node.args()) {
      if (const Node* input = argument.node()) inputs.push_back(input);
    }
  }
  return inputs;
}

void ParameterUses::add_arguments(const Node& node, std::vector<CountedParameter>& counted) const {
  for (const Node* input : counted_inputs(node)) add_placeholder(*input, node, counted);
}

void ParameterUses::add_placeholder(const Node& input, const Node& user,
                                    std::vector<CountedParameter>& counted) const {
  if (input.op() != Op::Placeholder) return;
  const TensorMeta* meta = input.meta().tensor();
  if (!is_trained(meta) || (input.meta().ddp_ignored && !rules_.ignored_if_inlined)) return;
  if (!rules_.each_use && first_use_.at(&input) != &user) return;
  counted.push_back({input.target(), bytes_of(*meta, input.target())});
}

void ParameterUses::add_attribute(const Node& node, std::vector<CountedParameter>& counted) const {
  const graph::Attribute* attribute = module_.find_attribute(node.target());
  if (!attribute || !is_trained(&attribute->meta) || attribute->ddp_ignored) return;
  counted.push_back({node.target(), bytes_of(attribute->meta, node.target())});
}

// A module's parameters count where it is last called, once.
void ParameterUses::add_module(const std::string& target, const std::string& prefix,
                               std::vector<CountedParameter>& counted) {
  const auto called = module_.find_submodule(target);
  if (called) add_parameters_of(*called, prefix + "_", counted);
}

// As torch.nn.Module.named_parameters(): its own, then those of its submodules, each module once.
void ParameterUses::add_parameters_of(const graph::GraphModule& module, const std::string& prefix,
                                      std::vector<CountedParameter>& counted) {
  if (!counted_modules_.insert(&module).second) return;
  for (const auto& [name, attribute] : module.attributes()) {
    if (!is_trained(&attribute.meta) || attribute.ddp_ignored) continue;
    counted.push_back({prefix + name, bytes_of(attribute.meta, name)});
  }
  for (const auto& [name, submodule] : module.submodules()) add_parameters_of(*submodule, prefix + name + ".", counted);
}

}  // namespace rehearse::parallel
