// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/ops/embedding.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>

#include "kit/graph/dynamo_steps.h"

namespace rehearse::graph {
namespace {

using Parameters = std::vector<at::Tensor>;
using Forward = at::Tensor (*)(const at::Tensor& input, const Parameters& parameters);

// A module whose parameters fully determine what it computes. Other modules have settings (a stride, a momentum) that a
// graph does not contain.
struct Leaf {
  std::string_view type;
  std::vector<std::string_view> parameters;
  Forward forward;
};

const std::vector<Leaf>& leaves() {
  static const std::vector<Leaf> known = {
      {"Linear",
       {"weight", "bias"},
       [](const at::Tensor& input, const Parameters& p) { return at::linear(input, p[0], p[1]); }},
      {"Embedding",
       {"weight"},
       [](const at::Tensor& input, const Parameters& p) { return at::embedding(p[0], input); }},
      {"ReLU", {}, [](const at::Tensor& input, const Parameters&) { return at::relu(input); }},
  };
  return known;
}

class LeafStep : public Step {
 public:
  LeafStep(const Node& node, const GraphModule& module, const Leaf& leaf) : node_(node), forward_(leaf.forward) {
    if (node.args().size() != 1 || !node.kwargs().empty())
      throw GraphError(node.name(), "args", "a " + module.type() + " takes one tensor");
    for (const std::string_view name : leaf.parameters) {
      const Attribute* attribute = module.find_attribute(name);
      if (attribute == nullptr && name != "bias") {
        throw GraphError(node.name(), "target", "the " + module.type() + " has no " + std::string(name));
      }
      if (attribute != nullptr && !attribute->tensor.defined()) {
        throw GraphError(node.name(), "target",
                         "the attribute '" + node.target() + "." + std::string(name) + "' has no data");
      }
      parameters_.push_back(attribute != nullptr ? attribute->tensor : at::Tensor());
    }
  }

  c10::IValue run(const ValueOf& value_of) const override {
    const c10::IValue input = to_ivalue(node_.args()[0], value_of, node_, "args[0]");
    if (!input.isTensor()) throw GraphError(node_.name(), "args[0]", "must be a tensor, and is " + input.tagKind());
    return forward_(input.toTensor(), parameters_);
  }

 private:
  const Node& node_;
  Forward forward_;
  Parameters parameters_;
};

}  // namespace

std::unique_ptr<Step> make_leaf_step(const Node& node, const GraphModule& module) {
  const auto called = module.find_submodule(node.target());
  if (called == nullptr || !called->is_leaf()) return nullptr;
  std::string types;
  for (const Leaf& leaf : leaves()) {
    if (leaf.type == called->type()) return std::make_unique<LeafStep>(node, *called, leaf);
    types += (types.empty() ? "" : ", ") + std::string(leaf.type);
  }
  throw GraphError(node.name(), "target",
                   "the submodule '" + node.target() + "' (" + called->type() +
                       ") has no graph, and its settings (a stride, a momentum) are no part of this "
                       "one; by their parameters alone these can be run: " +
                       types);
}

}  // namespace rehearse::graph
