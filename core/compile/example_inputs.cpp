// SPDX-License-Identifier: BSD-3-Clause
#include "compile/example_inputs.h"

#include <rehearse/capture/fake_tensor.h>
#include <rehearse/shapes/sym_node.h>

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

  at::Tensor tensor(const graph::TensorMeta& meta) const {
    capture::TensorSpec spec;
    spec.dtype = meta.dtype;
    spec.device = meta.device;
    spec.requires_grad = meta.requires_grad;
    for (const graph::SymInt& size : meta.sizes) spec.sizes.push_back(number(size));
    for (const graph::SymInt& stride : meta.strides) spec.strides.push_back(number(stride));
    spec.storage_offset = number(meta.storage_offset);
    return capture::make_fake(spec);
  }

  c10::IValue value() const {
    if (const graph::TensorMeta* meta = node_.meta().tensor()) return tensor(*meta);
    const graph::SymScalarMeta* scalar = node_.meta().value ? node_.meta().value->scalar() : nullptr;
    if (scalar && scalar->kind == graph::SymScalarMeta::Kind::Int) return number(scalar->expression);
    throw graph::GraphError(node_.name(), "meta", "says neither tensor nor integer");
  }

 private:
  const graph::Node& node_;
  const std::shared_ptr<shapes::ShapeEnv>& shapes_;
};

}  // namespace

std::vector<c10::IValue> example_inputs(const graph::GraphModule& module,
                                        const std::shared_ptr<shapes::ShapeEnv>& shapes) {
  std::vector<c10::IValue> inputs;
  for (const graph::Node* node : module.graph().placeholders()) inputs.push_back(FakeMaker(*node, shapes).value());
  return inputs;
}

}  // namespace rehearse::compiler
