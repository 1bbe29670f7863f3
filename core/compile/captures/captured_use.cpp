// SPDX-License-Identifier: BSD-3-Clause
#include "compile/captures/captured_use.h"

#include <utility>

#include <rehearse_internal/capture/fake_tensor.h>

namespace rehearse::compiler {
namespace {

std::shared_ptr<const graph::Origin> origin_of_use(const graph::Node& placeholder) {
  for (const graph::Node* user : placeholder.users()) {
    if (user->meta().origin) return user->meta().origin;
  }
  return nullptr;
}

// A function has no module that lists its parameters. A tensor that the function finds elsewhere counts as a parameter
// if it requires grad and is a leaf of autograd's graph.
void set_parameter(graph::Node& placeholder) {
  const graph::TensorMeta* known = placeholder.meta().tensor();
  if (!known || known->is_parameter) return;
  graph::TensorMeta meta = *known;
  meta.is_parameter = true;
  placeholder.meta().set_value(std::move(meta));
}

}  // namespace

CapturedUse::CapturedUse(const CallView& call, const std::vector<LeafShape>& shape)
    : call_(call), tensors_(call.leaves.size()), origins_(call.leaves.size()) {
  for (std::uint32_t i = 0; i < call.leaves.size(); ++i) {
    const Leaf& leaf = call.leaves[i];
    if (leaf.kind == LeafKind::Tensor) tensors_[i].emplace(*leaf.tensor, call.sources[i], shape[i].varies);
  }
}

void CapturedUse::look_at(const StandIns& stand_ins) {
  for (const at::Tensor& fake : stand_ins.tensors) {
    used_.push_back(fake.defined() && capture::layout_was_read(fake));
    offset_read_.push_back(fake.defined() && capture::offset_was_read(fake));
  }
}

void CapturedUse::bind_inputs(const capture::CapturedGraph& captured, const CapturedLeaves& leaves, Capture& capture) {
  const auto placeholders = captured.module->graph().placeholders();
  for (std::size_t i = 0; i < captured.inputs.size(); ++i) {
    const capture::GraphInput& input = captured.inputs[i];
    capture.input_names.push_back(input.name);
    capture.inputs.push_back(binding_of(input, leaves));
    const InputBinding& binding = capture.inputs.back();
    if (binding.kind == InputBinding::Kind::Captured) {
      add_captured(input, *placeholders[i], capture);
      continue;
    }
    used_[binding.index] = true;
    if (!origins_[binding.index]) origins_[binding.index] = origin_of_use(*placeholders[i]);
  }
  for (const at::Tensor& found : captured.found_arguments) guard_identity(found, capture);
}

// The guards then compare the argument with this very tensor.
void CapturedUse::guard_identity(const at::Tensor& found, Capture& capture) const {
  for (std::uint32_t i = 0; i < call_.leaves.size(); ++i) {
    const Leaf& leaf = call_.leaves[i];
    if (leaf.kind != LeafKind::Tensor || !leaf.tensor->is_same(found)) continue;
    return capture.guards.add_captured(found, *tensors_[i]);
  }
}

void CapturedUse::add_captured(const capture::GraphInput& input, graph::Node& placeholder, Capture& capture) const {
  if (input.role == capture::GraphInput::Role::Constant) capture.kept_by_reference.push_back(input.name);
  TensorGuard guard(input.tensor, input.name);
  if (const graph::TensorMeta* const captured = placeholder.meta().tensor()) guard.expect_as(*captured);
  guard_storage(input.tensor, guard);
  capture.guards.add_captured(input.tensor, std::move(guard));
  if (input.tensor.requires_grad() && input.tensor.is_leaf()) set_parameter(placeholder);
}

void CapturedUse::guard_storage(const at::Tensor& tensor, TensorGuard& guard) const {
  for (const capture::StorageFact& fact : storages_) {
    if (fact.tensor.is_same(tensor)) guard.guard_storage(fact.bytes);
  }
}

// True if the code read this leaf, or another leaf that is the same tensor.
bool CapturedUse::is_used(std::uint32_t leaf) const {
  for (std::uint32_t i = 0; i < call_.leaves.size(); ++i) {
    if (!used_[i]) continue;
    if (i == leaf) return true;
    const Leaf& other = call_.leaves[i];
    if (other.kind == LeafKind::Tensor && other.tensor->is_same(*call_.leaves[leaf].tensor)) return true;
  }
  return false;
}

void CapturedUse::add_leaf(std::uint32_t i, Capture& capture) const {
  const Leaf& leaf = call_.leaves[i];
  if (leaf.kind == LeafKind::Tensor) {
    TensorGuard guard = *tensors_[i];
    guard.set_origin(origins_[i]);
    if (!is_used(i)) guard.ignore_layout();
    if (offset_read_[i]) guard.guard_offset();
    guard_storage(*leaf.tensor, guard);
    capture.guards.add_tensor(std::move(guard));
  } else if (leaf.kind == LeafKind::SymInt && capture.shape[i].symbolic_int) {
    capture.guards.add_symbol(call_.sources[i]);
  } else {
    capture.guards.add_value(leaf, call_.sources[i]);
  }
}

void CapturedUse::add_guards(std::vector<SymbolPosition> positions, const std::shared_ptr<shapes::ShapeEnv>& shapes,
                             WatchList watches, Capture& capture) const {
  for (std::uint32_t i = 0; i < call_.leaves.size(); ++i) add_leaf(i, capture);
  for (SymbolPosition& position : positions) position.is_used = position.dimension < 0 || is_used(position.leaf);
  capture.guards.set_state(call_.state);
  capture.guards.set_modules(ModuleGuard(call_.module));
  capture.guards.set_symbols(SymbolGuards(positions, shapes));
  capture.guards.set_watches(std::move(watches));
  capture.guards.set_aliases(call_.leaves);
}

}  // namespace rehearse::compiler
