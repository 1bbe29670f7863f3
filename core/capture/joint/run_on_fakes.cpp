// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/capture/run_on_fakes.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <ATen/core/grad_mode.h>

#include <rehearse/graph/interpreter.h>
#include <rehearse_internal/capture/fake_mode.h>
#include <rehearse_internal/capture/fake_tensor.h>
#include <rehearse_internal/shapes/shape_env.h>
#include <rehearse_internal/shapes/sym_node.h>

#include "capture/joint/joint_matmul.h"

namespace rehearse::capture {
namespace {

void set_unbacked_of(const graph::Node* node, const std::shared_ptr<shapes::ShapeEnv>& shapes, FakeMode& mode) {
  std::vector<c10::SymInt> symbols;
  if (node != nullptr && shapes != nullptr) {
    const auto& known = shapes->unbacked();
    for (const std::string& name : node->meta().unbacked_bindings) {
      const bool is_known =
          std::any_of(known.begin(), known.end(), [&](const auto& each) { return each.name == name; });
      if (is_known) symbols.push_back(shapes::to_sym_int(shapes, shapes::Expr::symbol(name)));
    }
  }
  mode.set_unbacked(std::move(symbols));
}

}  // namespace

std::vector<c10::IValue> copies_of_fakes(const std::vector<c10::IValue>& fakes) {
  std::vector<c10::IValue> copies = fakes;
  std::map<const c10::StorageImpl*, at::Tensor> of_storage;
  for (c10::IValue& value : copies) {
    if (!value.isTensor() || !value.toTensor().defined()) continue;
    const at::Tensor fake = value.toTensor();
    at::Tensor& sharing = of_storage[fake.storage().unsafeGetStorageImpl()];
    value = make_fake(spec_of(fake), sharing);
    if (!sharing.defined()) sharing = value.toTensor();
  }
  return copies;
}

std::vector<c10::IValue> run_on_fakes(const std::shared_ptr<const graph::GraphModule>& module,
                                      const std::vector<c10::IValue>& fakes,
                                      const std::shared_ptr<shapes::ShapeEnv>& shapes) {
  const at::NoGradGuard no_grad;
  const SymbolicMatmul symbolic_matmul;
  FakeMode mode(shapes);
  graph::Interpreter interpreter(module);
  interpreter.set_observer(
      [&](const graph::Node& node, const c10::IValue&) { set_unbacked_of(node.next(), shapes, mode); });
  std::vector<c10::IValue> inputs = copies_of_fakes(fakes);
  for (const c10::IValue& input : inputs) {
    if (!input.isTensor() || !input.toTensor().defined()) continue;
    mode.own(input.toTensor());
    // The graph may switch grad mode on and write to inputs that are no leaves in the caller's code. Here they would be
    // leaves, and such a write throws if a leaf requires grad.
    input.toTensor().set_requires_grad(false);
  }
  const FakeMode::Scope scope(mode);
  set_unbacked_of(module->graph().first(), shapes, mode);
  return interpreter.run(std::move(inputs));
}

}  // namespace rehearse::capture
