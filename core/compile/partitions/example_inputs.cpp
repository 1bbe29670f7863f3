// SPDX-License-Identifier: BSD-3-Clause
#include "compile/partitions/example_inputs.h"

#include <map>

#include <rehearse_internal/capture/fake_tensor.h>
#include <rehearse_internal/shapes/sym_node.h>

namespace rehearse::compiler {
namespace {

class FakeMaker {
 public:
  FakeMaker(const graph::Node& node, const std::shared_ptr<shapes::ShapeEnv>& shapes) : node_(node), shapes_(shapes) {}

  c10::SymInt number(const graph::SymInt& value) const {
    return value.is_symbolic() ? number(value.expression()) : c10::SymInt(value.number());
  }

  c10::SymInt number(const graph::SymExpr& value) const {
    if (value.expr() == nullptr) {
      throw graph::GraphError(node_.name(), "meta", "'" + value.text() + "' is no integer expression");
    }
    return shapes::to_sym_int(shapes_, *value.expr());
  }

  at::Tensor tensor(const graph::TensorMeta& meta, const at::Tensor& alias_of) const {
    capture::TensorSpec spec;
    spec.dtype = meta.dtype;
    spec.device = meta.device;
    spec.requires_grad = meta.requires_grad;
    spec.is_conj = meta.is_conj;
    spec.is_neg = meta.is_neg;
    for (const graph::SymInt& size : meta.sizes) spec.sizes.push_back(number(size));
    for (const graph::SymInt& stride : meta.strides) spec.strides.push_back(number(stride));
    spec.storage_offset = number(meta.storage_offset);
    return capture::make_fake(spec, alias_of);
  }

  // `alias_of`: the fake whose storage the value shares; undefined: none. `other`: replaces the node's metadata; null:
  // nothing replaces them.
  c10::IValue value(const at::Tensor& alias_of, const graph::TensorMeta* other) const {
    if (other != nullptr) return tensor(*other, alias_of);
    if (const graph::TensorMeta* meta = node_.meta().tensor()) return tensor(*meta, alias_of);
    const graph::SymScalarMeta* scalar = node_.meta().value ? node_.meta().value->scalar() : nullptr;
    if (scalar && scalar->kind == graph::SymScalarMeta::Kind::Int) return number(scalar->expression);
    const bool is_work = node_.meta().value && std::holds_alternative<std::monostate>(node_.meta().value->value());
    if (is_work) return {};  // a Work or None
    throw graph::GraphError(node_.name(), "meta", "says neither tensor nor integer");
  }

 private:
  const graph::Node& node_;
  const std::shared_ptr<shapes::ShapeEnv>& shapes_;
};

}  // namespace

std::vector<c10::IValue> example_inputs(const graph::GraphModule& module,
                                        const std::shared_ptr<shapes::ShapeEnv>& shapes, const MemoryClasses* memory,
                                        const OtherInputs& others) {
  std::vector<c10::IValue> inputs;
  std::map<std::size_t, at::Tensor> of_class;
  for (const graph::Node* node : module.graph().placeholders()) {
    at::Tensor none;
    at::Tensor& sharing = memory != nullptr ? of_class[memory->of(*node)] : none;
    const auto other = others.find(inputs.size());
    inputs.push_back(FakeMaker(*node, shapes).value(sharing, other != others.end() ? &other->second : nullptr));
    if (inputs.back().isTensor() && !sharing.defined()) sharing = inputs.back().toTensor();
  }
  return inputs;
}

}  // namespace rehearse::compiler
